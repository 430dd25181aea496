"""make test-vm: boots a virtual machine, runs the tests of this folder in it, and judges what came out.

The machine is a tool of its own, named by the environment variable EDGE_VM: a program whose `run` boots a
throw-away Debian, copies a directory in, runs one command there as root and hands its files and status back, and
whose USB serial ports have unix sockets as wires. Outside it run the boards. Its kernel must have the camera driver
vivid, and it `v4l2-ctl`.
"""

import json
import os
import shutil
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import trio
from outside_boards import HandBoard, Observer
from usb_ports import UID

ROOT = Path(__file__).resolve().parents[2]
SENT_IN = ("edge_daemon", "calibration", "firmware", "systemd", "tests/vm", "pyproject.toml")
# What the guest needs beside the daemon's own dependencies.
TEST_REQUIREMENTS = ("pytest", "pytest-trio")
LIFE_S = 900
DEBIAN_PACKAGES = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "modprobe": "kmod",
}


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    tool = os.environ.get("EDGE_VM")
    if not tool:
        say("test-vm: SKIPPED, nothing was tested: set EDGE_VM to the virtual machine tool (README.md)")
        return 0
    if shutil.which(tool) is None:
        say(f"test-vm: EDGE_VM={tool}: there is no such program")
        return 2
    # Debian keeps two of them where an ordinary user's PATH does not look.
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [
        package for program, package in DEBIAN_PACKAGES.items() if shutil.which(program, path=path) is None
    ]
    if missing:
        say(f"test-vm: not installed: {' '.join(missing)}; sudo apt-get install {' '.join(missing)}")
        return 2
    # Sockets have short names only, so not below the build directory.
    with tempfile.TemporaryDirectory(prefix="edge-vm-") as folder:
        return trio.run(run, tool, Path(folder), sys.argv[1:])


async def run(tool: str, folder: Path, pytest_arguments: list[str]) -> int:
    """Start the boards, then the machine; returns the exit status."""
    out = folder / "out"
    _copy_sources(folder / "job")
    boards = {name: HandBoard(name, uid, folder) for name, uid in UID.items()}
    observer = Observer(boards, folder)
    async with trio.open_nursery() as nursery:
        for board in boards.values():
            await nursery.start(board.run)
        await nursery.start(observer.run)
        wires = {name: board.wire_path for name, board in boards.items()} | {"OBSERVER": observer.wire_path}
        command = [
            tool,
            "run",
            *("-d", str(folder / "job"), "-o", str(out), "-t", str(LIFE_S)),
            *(argument for name, wire in wires.items() for argument in ("-s", f"{name}={wire}")),
            *(
                "--",
                "env",
                "EDGE_VM_OUT=/job/out",
                "python",
                "-m",
                "pytest",
                "tests/vm",
                "-p",
                "no:cacheprovider",
            ),
            *("--junitxml=/job/out/junit.xml", *pytest_arguments),
        ]
        ended = await trio.run_process(command, env=_environment(folder), check=False)
        nursery.cancel_scope.cancel()
    if not (out / "junit.xml").exists():
        say(f"test-vm: the machine ended with {ended.returncode} and no results")
        return ended.returncode or 1
    is_good = _report(out, boards)
    return 0 if is_good and ended.returncode == 0 else 1


def _environment(folder: Path) -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = folder / "requirements.txt"
    requirements.write_text("\n".join((*project["dependencies"], *TEST_REQUIREMENTS)) + "\n")
    # One processor: the boards outside, and whatever else this machine does, keep the others.
    return {"VMRIG_CPUS": "1", **os.environ, "VMRIG_REQS": str(requirements)}


def _copy_sources(job: Path) -> None:
    without_caches = shutil.ignore_patterns("__pycache__")
    for name in SENT_IN:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, job / name, ignore=without_caches)
        else:
            shutil.copy2(source, job / name)


def _report(out: Path, boards: dict[str, HandBoard]) -> bool:
    """Print the figures and compare the guest's account of every tap with what the drives outside did."""
    suite = ElementTree.parse(out / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    figures = json.loads((out / "figures.json").read_text())
    taps = json.loads((out / "taps.json").read_text())
    presses = Counter((name, *place) for name, board in boards.items() for place in board.presses)
    asked = Counter((tap["board"], tap["x_um"], tap["y_um"]) for tap in taps)
    figures |= {
        "tests": int(suite.get("tests", 0)),
        "failures": int(suite.get("failures", 0)) + int(suite.get("errors", 0)),
        "skipped": int(suite.get("skipped", 0)),
        "guest_s": round(float(suite.get("time", 0)), 1),
        "taps": len(taps),
        "taps_by_outcome": dict(Counter(tap["outcome"] for tap in taps)),
        "double_executions": sum(count - 1 for count in presses.values() if count > 1),
        "presses_nobody_asked_for": sum(1 for place in presses if place not in asked),
        "outcomes_that_disagree_with_the_drives": sum(
            1
            for tap in taps
            if tap["presses"] is not None
            and presses[(tap["board"], tap["x_um"], tap["y_um"])] != tap["presses"]
        ),
    }
    say(json.dumps(figures, indent=2))
    wrong = ("failures", "skipped", "double_executions", "presses_nobody_asked_for")
    return not any(figures[name] for name in (*wrong, "outcomes_that_disagree_with_the_drives"))


if __name__ == "__main__":
    sys.exit(main())
