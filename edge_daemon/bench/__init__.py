"""The digital twin and the bench suites."""
