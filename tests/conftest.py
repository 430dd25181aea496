"""For the whole tree: property tests draw the same examples on every machine, and none is timed."""

import hypothesis

hypothesis.settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("steady")
