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


@pytest.mark.parametrize("kind", ["hand", "hid"])
def test_hundreds_of_commands_leave_the_heap_as_it_was(kind):
    command = [str(MICROPYTHON), "-X", "heapsize=160k", str(PROBE), str(ROOT), kind]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    free_before, free_after = (int(number) for number in result.stdout.split())
    assert free_after >= free_before - 64
    # Code compiled on the board and 64-bit objects included; a chip with 32-bit .mpy code has far more left.
    assert free_after >= 40_000
