"""Cameras: a capture process per camera, its frames, whether the screen is still, the rectified picture.

Import from the modules (`cameras.camera`, `cameras.settle`, …). Nothing is re-exported here: the capture
process imports this package too, and must not pay for trio, numpy and OpenCV before it has a use for them.
"""
