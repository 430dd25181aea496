"""`edge-daemon bench calibrate`: whole calibrations of many hidden rigs in virtual time, each judged by the phone.

Three processes a seed. `world` holds the twin with its hidden truth. `solver` is the calibration package, which gets
pictures, touches and pages over a socket and nothing else: it never imports the twin. `suite` starts both, takes the
solver's calibration to the world, and there the acting path's taps are held against the phone's own log.
"""
