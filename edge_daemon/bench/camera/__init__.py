"""Benches of the cameras: how well the daemon sees, what it costs, whether it lasts."""
