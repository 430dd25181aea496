"""For the whole tree: property tests draw the same examples on every machine, and none is timed."""

from collections.abc import Callable

import hypothesis
import pytest

hypothesis.settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("steady")


@pytest.fixture
def must_be_nowhere() -> Callable[[str, object, bytes | str], None]:
    """Called with a typed text, where one looks, and what stands there: in no form that could be read back."""

    def check(text: str, where: object, content: bytes | str) -> None:
        data = content.encode() if isinstance(content, str) else content
        raw = text.encode()
        hexadecimal = raw.hex()
        forms = (raw, hexadecimal.encode(), raw.hex(" ").encode(), hexadecimal.upper().encode())
        for form in (*forms, text.encode("utf-16-le")):
            assert form not in data, f"typed text in {where}"

    return check
