"""Tests that need a kernel of their own: they run inside a virtual machine (make test-vm) and nowhere else."""

import json
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# The helpers beside the tests; importlib's import mode puts no folder on the path by itself.
sys.path.insert(0, str(HERE))
from usb_ports import UsbPorts  # noqa: E402

# Set by run_in_vm.py inside the guest: where what a test leaves is handed out to the host.
OUT = os.environ.get("EDGE_VM_OUT")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if OUT is None:
        for item in items:
            if item.path.parent == HERE:
                item.add_marker(pytest.mark.skip(reason="needs a kernel of its own: make test-vm"))


class Figures:
    """What was measured, by name, and what became of each tap; the host reads both from files."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self.taps: list[dict[str, object]] = []

    def write(self, folder: Path) -> None:
        (folder / "figures.json").write_text(json.dumps(self.values))
        (folder / "taps.json").write_text(json.dumps(self.taps))


@pytest.fixture(scope="session")
def figures():
    """The run's figures, written out when the last test is over."""
    figures = Figures()
    figures.values["kernel"] = os.uname().release
    yield figures
    assert OUT is not None
    figures.write(Path(OUT))


# What is plugged in stays so from test to test: a plug takes its second.
_usb = UsbPorts()


@pytest.fixture
async def usb():
    """Every adapter in its own port (usb_ports.HOME_PORT); a test may move them."""
    await _usb.all_home()
    return _usb
