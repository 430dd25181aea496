"""The firmware lives in an ESP32's heap: it fits, and it does not eat it up."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).with_name("heap_probe.py")
MICROPYTHON = shutil.which("micropython", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")

pytestmark = pytest.mark.skipif(MICROPYTHON is None, reason="no MicroPython for this machine")


def free_bytes(root: Path, kind: str, commands: int) -> tuple[int, int]:
    """Before and after so many commands, in an interpreter with a chip's heap."""
    command = [str(MICROPYTHON), "-X", "heapsize=160k", str(PROBE), str(root), kind, str(commands)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    before, after = (int(number) for number in result.stdout.split())
    return before, after


@pytest.mark.parametrize("kind", ["hand", "hid", "hid-ios"])
def test_hundreds_of_commands_leave_the_heap_as_it_was(kind):
    free_before, free_after = free_bytes(ROOT, kind, 300)
    assert free_after >= free_before - 64
    # Code compiled on the board and 64-bit objects included; a chip with 32-bit .mpy code has far more left.
    assert free_after >= 40_000


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The firmware as .mpy, as it is copied to a chip."""
    script = Path(__file__).with_name("compile_firmware.py")
    directory = tmp_path_factory.mktemp("mpy")
    subprocess.run([sys.executable, str(script), str(directory)], check=True, timeout=60)
    return directory


@pytest.mark.parametrize("kind", ["hand-scara", "hand-linear", "hand-rotary"])
def test_an_arm_on_bus_servos_fits_and_leaves_the_heap_as_it_was(compiled, kind):
    free_before, free_after = free_bytes(compiled, kind, 150)
    assert free_after >= free_before - 64
    assert free_after >= 40_000
