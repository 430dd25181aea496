"""edge-daemon: one small module per command."""
