"""`edge-daemon bench link`: the daemon's end of a board's line, the firmware's end, and every fault in between."""
