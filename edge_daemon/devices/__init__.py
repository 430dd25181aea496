"""A phone and its parts: one action at a time."""
