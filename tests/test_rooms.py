"""What each room must not know, read off its imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MUST_NOT_KNOW: dict[str, tuple[str, ...]] = {
    "edge_daemon/contract": ("trio", "sqlite3", "socket", "cv2", "serial", "edge_daemon.devices"),
    "edge_daemon/upstream": ("edge_daemon.boards", "edge_daemon.cameras", "edge_daemon.ledger", "sqlite3"),
    "edge_daemon/ledger": ("edge_daemon.devices", "edge_daemon.upstream", "edge_daemon.boards", "socket"),
    "edge_daemon/boards": (
        "edge_daemon.contract",
        "edge_daemon.ledger",
        "edge_daemon.devices",
        "calibration",
    ),
    "edge_daemon/cameras": ("edge_daemon.boards", "edge_daemon.ledger", "edge_daemon.devices"),
    "edge_daemon/devices": ("serial", "socket", "msgpack", "sqlite3", "firmware.framing"),
    "calibration": ("trio", "serial", "socket", "edge_daemon", "firmware"),
    "firmware": ("edge_daemon", "calibration"),
}


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def knows(module: str, forbidden: str) -> bool:
    return module == forbidden or module.startswith(forbidden + ".")


@pytest.mark.parametrize("room", MUST_NOT_KNOW)
def test_a_room_does_not_know_what_it_must_not_know(room: str) -> None:
    files = list((ROOT / room).rglob("*.py"))
    assert files
    for path in files:
        for module in imports_of(path):
            for forbidden in MUST_NOT_KNOW[room]:
                assert not knows(module, forbidden), f"{path.relative_to(ROOT)} imports {module}"


def test_nothing_but_the_bench_command_knows_that_the_bench_exists() -> None:
    for package in ("edge_daemon", "calibration", "firmware"):
        for path in (ROOT / package).rglob("*.py"):
            inside = path.is_relative_to(ROOT / "edge_daemon" / "bench")
            if inside or path == ROOT / "edge_daemon" / "cli" / "bench.py":
                continue
            for module in imports_of(path):
                assert not knows(module, "edge_daemon.bench"), f"{path.relative_to(ROOT)} imports {module}"
