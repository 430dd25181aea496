"""The suites that guard the promises of the link notice when what keeps them is taken away.

Each test breaks one line in a copy of the source and runs a suite there: it must fail, and hold without the edit.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LINK_SUITE = """
import sys
from edge_daemon.bench.link.suite import Effort, LinkReport, play_every_position, quiet_boards
report = LinkReport(1, "virtual clock")
with quiet_boards():
    play_every_position(report, Effort(1, 1, 0, 0, 0), names=sys.argv[1:])
print(report.double_executions, report.lost_results, *report.problems[:3], sep="\\n")
sys.exit(1 if report.problems else 0)
"""
FUZZ = """
import sys
from edge_daemon.bench.link.fuzz import fuzz_board
result = fuzz_board("cpython", 3000, 1)
print(result)
sys.exit(1 if result.problems else 0)
"""
HID_SUITE = ["-m", "pytest", "-p", "no:cacheprovider", "-x", "tests/firmware/test_hid_core.py", "-k"]


def link_suite(*faults: str) -> list[str]:
    return ["-c", LINK_SUITE, *faults]


@pytest.fixture
def copy(tmp_path):
    """The source in a place of its own, with its compiled files."""
    for package in ("edge_daemon", "firmware", "tests/firmware"):
        shutil.copytree(ROOT / package, tmp_path / package)
    for file in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy2(ROOT / file, tmp_path / file)
    return tmp_path


def run(copy: Path, suite: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *suite],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def break_line(path: Path, line: str, broken: str) -> None:
    """Replace the one place where `line` stands. Fails when the source has moved on and it is there no more."""
    source = path.read_text(encoding="utf-8")
    assert source.count(line) == 1, f"{path.name} has {line!r} {source.count(line)} times; adapt this test"
    path.write_text(source.replace(line, broken), encoding="utf-8")


NO_MEMORY = (
    "firmware/memory.py",
    "if self._states[slot] != wire.STATE_ABSENT and self._cmd_ids[slot] == cmd_id:",
    "if False:",
)
NO_ORDER = ("firmware/link.py", "        elif behind:\n", "        elif False:\n")
NO_CHECKSUM = (
    "firmware/framing.py",
    "if binascii.crc32(self._view[1:n]) != _CRC_RESIDUE:",
    "if False:",
)
NO_RELEASE = (
    "firmware/hid/operations.py",
    "usage = 0 if self._reports_sent else self._usage",
    "usage = self._usage",
)
KEYS = [*HID_SUITE, "key_is_pressed_and_released"]

MUTATIONS = {
    "the memory of what was carried out": ([NO_MEMORY], link_suite("vanish")),
    "the memory and the refusal of repeated frames": ([NO_MEMORY, NO_ORDER], link_suite("duplicate")),
    "the checksum": ([NO_CHECKSUM], ["-c", FUZZ]),
    "the release of a key": ([NO_RELEASE], KEYS),
}


@pytest.mark.parametrize("gone", MUTATIONS)
def test_a_suite_fails_without(copy, gone):
    edits, suite = MUTATIONS[gone]
    for file, line, broken in edits:
        break_line(copy / file, line, broken)
    result = run(copy, suite)
    assert result.returncode == 1, f"nothing noticed that {gone} is gone:\n{result.stdout}{result.stderr}"
    assert "Error" not in result.stderr, f"it failed for another reason:\n{result.stderr}"


def test_the_same_suites_hold_with_nothing_taken_away(copy):
    for suite in (link_suite("vanish", "duplicate"), ["-c", FUZZ], KEYS):
        result = run(copy, suite)
        assert result.returncode == 0, result.stdout + result.stderr
