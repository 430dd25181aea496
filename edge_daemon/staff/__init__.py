"""The technician's side: calibration of a device through the running daemon's staff socket."""
