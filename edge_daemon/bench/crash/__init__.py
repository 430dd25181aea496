"""`edge-daemon bench crash`: the promise of at most one touch per key and no receipt lost, against a machine that
tries to break it: simulated histories by the thousand, and real processes killed for real."""
