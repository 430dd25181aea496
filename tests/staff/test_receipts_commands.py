"""`edge-daemon receipts`: through a daemon's staff socket, and from the file of one that does not run."""

import json
import stat
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from click.testing import CliRunner, Result

import edge_daemon
from edge_daemon.bench.plane import open_plane
from edge_daemon.boards import Board
from edge_daemon.cameras.camera import Camera
from edge_daemon.cli.main import main
from edge_daemon.clock import PlaneClock
from edge_daemon.config import load_config
from edge_daemon.contract import Actor, Receipt, error_info
from edge_daemon.daemon import endpoints_of, pages_of, screens_of
from edge_daemon.devices.build import House, build_fleet
from edge_daemon.ledger import CommandRef, Ledger, open_ledger
from edge_daemon.staff.unattended import Unattended
from edge_daemon.upstream import EdgeIdentity, serve

EXAMPLE = Path(edge_daemon.__file__).parent.parent / "systemd" / "edge-daemon.example.toml"
COMMAND = CommandRef(board_uid="uid", board_boot_id=1, cmd_id=1)


def pending(key: str, device_id: str = "phone-1", **changes: Any) -> Receipt:
    receipt = Receipt(
        org_id="org-1",
        device_id=device_id,
        idempotency_key=key,
        backend_kind="robot_hand",
        action="tap",
        args_summary={"x": 500.0, "y": 320.0},
        status="pending",
        requested_at="2025-06-01T12:00:00.000Z",
        boot_id="boot-1",
        requested_ns=5,
        clock_synced=True,
        actor=Actor(kind="run", id="run-42"),
    )
    return msgspec.structs.replace(receipt, **changes)


async def fill(ledger: Ledger) -> None:
    """Of each kind one, and a key that two devices have."""
    nobody_knows = {
        "status": "failed",
        "error": error_info("outcome_unknown", "its board did not appear"),
        "reason": "outcome_unknown",
        "requires_manual_review": True,
    }
    committed = {"status": "committed", "committed_at": "2025-06-01T12:00:01.000Z"}
    for receipt, final in (
        (pending("done"), committed),
        (pending("refused"), {"status": "failed", "error": error_info("expired", "too late")}),
        (pending("[red]nobody knows"), nobody_knows),
        (pending("both"), committed),
        (pending("both", "phone-old"), committed),
        (pending("moved", "phone-old"), committed),
    ):
        await ledger.accept(receipt, b"tap", 1, COMMAND)
        await ledger.settle(msgspec.structs.replace(receipt, **final))
    await ledger.accept(pending("late", requested_at="2025-06-02T00:00:00.000Z"), b"tap", 1, COMMAND)


class Edge:
    """A configuration, its ledger, and the commands of a person at the rig."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "edge-daemon.toml"
        text = EXAMPLE.read_text(encoding="utf-8")
        text = text.replace("/var/lib/edge-daemon", str(directory)).replace(
            "/run/edge-daemon", str(directory)
        )
        self.path.write_text(text, encoding="utf-8")
        self.config = load_config(self.path)
        self.ledger: Ledger | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Ledger]:
        """The daemon's staff socket, ledger and devices; no board is opened for it."""
        config = self.config
        async with open_ledger(config.ledger_path) as ledger, trio.open_nursery() as nursery:
            boards = {
                name: Board(name, board.port, board.uid, board.kind) for name, board in config.boards.items()
            }
            cameras = {name: Camera(name, source) for name, source in config.cameras.items()}
            house = House(config, ledger, PlaneClock(), "boot-1", time.monotonic_ns, boards, cameras)
            fleet = build_fleet(house, [], Unattended(pages_of(config, screens_of(config))))
            identity = EdgeIdentity("rig-1", "boot-1")
            await nursery.start(partial(serve, fleet, endpoints_of(config), identity, PlaneClock()))
            yield ledger
            nursery.cancel_scope.cancel()

    async def says(self, *arguments: str, columns: int = 140) -> Result:
        """What `edge-daemon receipts` says; never a traceback."""
        command = ["receipts", *arguments, "--config", str(self.path)]
        result = await trio.to_thread.run_sync(
            partial(CliRunner().invoke, main, command, env={"COLUMNS": str(columns), "SUDO_USER": "jo"})
        )
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    async def shows(self, *arguments: str) -> Any:
        result = await self.says(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


def keys(receipts: list[dict[str, Any]]) -> list[str]:
    return [receipt["idempotencyKey"] for receipt in receipts]


@pytest.fixture
def edge(tmp_path: Path) -> Edge:
    return Edge(tmp_path)


Open = Callable[[], AbstractAsyncContextManager[None]]


@pytest.fixture(params=["running", "not running"])
def filled(edge: Edge, request: pytest.FixtureRequest) -> Open:
    """While it lasts the receipts can be asked for: of the daemon, or of the file that it left."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[None]:
        async with edge.running() as ledger:
            await fill(ledger)
            if request.param == "running":
                yield
                return
        yield

    return opened


async def test_the_newest_come_first_and_filters_choose(edge, filled) -> None:
    async with filled():
        every = ["late", "moved", "both", "both", "[red]nobody knows", "refused", "done"]
        assert keys(await edge.shows("list")) == every
        assert keys(await edge.shows("list", "--limit", "2")) == every[:2]
        assert keys(await edge.shows("list", "--device", "phone-old")) == ["moved", "both"]
        assert keys(await edge.shows("list", "--needs-review")) == ["[red]nobody knows"]
        assert keys(await edge.shows("list", "--since", "2025-06-01T18:00+00:00")) == ["late"]
        assert keys(await edge.shows("list", "--since", "1h")) == []
        for status, key in (("unknown", "[red]nobody knows"), ("failed", "refused"), ("pending", "late")):
            assert keys(await edge.shows("list", "--status", status)) == [key]
        table = await edge.says("list", "--limit", "5")
        assert "[red]nobody knows" in table.stdout
        assert "unknown: look" in table.stdout
        assert "there are more" in table.stdout
        assert "no such receipts" in (await edge.says("list", "--since", "1h")).stdout


async def test_one_is_shown_with_everything_it_says(edge, filled) -> None:
    async with filled():
        shown = await edge.shows("show", "refused")
        assert shown["error"]["code"] == "expired"
        text = (await edge.says("show", "[red]nobody knows")).stdout
        for word in (
            "[red]nobody knows",
            "its board did not appear",
            "outcome_unknown",
            "run run-42 of org-1",
        ):
            assert word in text
        missing = await edge.says("show", "never-sent")
        assert missing.exit_code == 2
        assert "no receipt by key never-sent on phone-1" in missing.stderr


async def test_a_time_by_a_clock_that_no_plane_set_is_told_and_not_which_where_that_is_not_known(
    edge,
) -> None:
    async with edge.running() as ledger:
        asked = pending("recovered")
        await ledger.accept(asked, b"tap", 1, COMMAND)
        unsynced = {"status": "committed", "committed_at": "1970-01-01T00:00:01.000Z", "clock_synced": False}
        await ledger.settle(msgspec.structs.replace(asked, **unsynced))
        shown = (await edge.says("show", "recovered")).stdout
        listed = (await edge.says("list")).stdout
    requested = next(line for line in shown.splitlines() if line.startswith("requested"))
    assert requested.split() == ["requested", "2025-06-01T12:00:00.000Z"]
    for text in (shown, listed):
        assert "when it was requested, or when it ended, is by the machine's own clock" in " ".join(
            text.split()
        )


async def test_a_text_takes_no_more_room_in_the_list_than_a_tap(edge) -> None:
    digest = "0123456789abcdef" * 2
    async with edge.running() as ledger:
        tap = pending("run-42-step-7")
        text = pending("run-42-step-8", action="typeText", args_summary={"characters": 12, "digest": digest})
        await ledger.accept(tap, b"tap", 1, COMMAND)
        await ledger.accept(text, b"text", 1, COMMAND)
        lines = [line for line in (await edge.says("list", columns=80)).stdout.splitlines() if line[0] == "│"]
        assert digest in (await edge.says("show", "run-42-step-8")).stdout
    newest, older = (number for number, line in enumerate(lines) if "12:00:00" in line)
    assert older - newest <= len(lines) - older


async def test_everything_is_exported_oldest_first_to_a_private_file(edge, filled) -> None:
    async with filled():
        file = edge.directory / "receipts.jsonl"
        assert await edge.shows("export", "-o", str(file)) == {"receipts": 7, "file": str(file)}
        lines = file.read_bytes().splitlines()
        oldest_first = ["done", "refused", "[red]nobody knows", "both", "both", "moved", "late"]
        assert keys([json.loads(line) for line in lines]) == oldest_first
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert (await edge.says("export")).stdout.encode().splitlines() == lines
        again = await edge.says("export", "-o", str(file))
        assert again.exit_code == 2
        assert "exists" in again.stderr
        nowhere = await edge.says("export", "-o", str(edge.directory / "none" / "x"))
        assert nowhere.exit_code == 2
        assert "cannot be written" in nowhere.stderr


async def test_a_key_of_several_devices_asks_for_the_device(edge) -> None:
    async with edge.running() as ledger:
        await fill(ledger)
    several = await edge.says("show", "both")
    assert several.exit_code == 2
    assert "phone-1 (committed), phone-old (committed): choose one with --device" in several.stderr
    assert (await edge.shows("show", "both", "--device", "phone-old"))["deviceId"] == "phone-old"


async def test_a_device_that_is_no_longer_configured_is_asked_for_by_name(edge) -> None:
    async with edge.running() as ledger:
        await fill(ledger)
        assert (await edge.shows("show", "both", "--device", "phone-old"))["deviceId"] == "phone-old"
        never = await edge.says("show", "never-sent", "--device", "phone-old")
    assert never.exit_code == 2
    assert "no receipt by key never-sent on phone-old: nothing was executed for it" in never.stderr


async def test_a_key_is_looked_up_on_devices_that_are_no_longer_configured_too(edge, filled) -> None:
    async with filled():
        assert (await edge.shows("show", "moved"))["deviceId"] == "phone-old"
        several = await edge.says("show", "both")
        assert several.exit_code == 2
        assert "phone-1 (committed), phone-old (committed): choose one with --device" in several.stderr
        missing = await edge.says("show", "never-sent")
        assert "no receipt by key never-sent on phone-1, phone-old: nothing was" in " ".join(
            missing.stderr.split()
        )


@pytest.mark.parametrize(
    "arguments",
    [("show", "done"), ("list",), ("list", "--needs-review"), ("export",)],
    ids=lambda arguments: " ".join(arguments),
)
async def test_of_a_device_that_nobody_knows_nothing_is_said_but_that(edge, filled, arguments) -> None:
    async with filled():
        said = await edge.says(*arguments, "--device", "phone-l")
    assert said.exit_code == 2
    assert said.stdout == ""
    assert "unknown device 'phone-l'" in said.stderr
    assert "known: phone-1, phone-old" in said.stderr
    assert "executed" not in said.stderr


async def test_of_a_configured_device_that_has_no_receipts_yet_nothing_was_executed(edge) -> None:
    async with edge.running():
        running = await edge.says("show", "done", "--device", "phone-1")
    stopped = await edge.says("show", "done", "--device", "phone-1")
    for said in (running, stopped):
        assert "no receipt by key done on phone-1: nothing was executed for it" in said.stderr


async def test_a_persons_word_is_kept_with_who_when_and_why(edge) -> None:
    said = ("resolve", "[red]nobody knows", "--as", "not-executed", "--note", "the screen is unchanged")
    async with edge.running() as ledger:
        await fill(ledger)
        for receipt in await ledger.unacknowledged(9):
            await ledger.acknowledge(receipt.device_id, receipt.idempotency_key)
        async with open_plane("plane-1", edge.directory / "plane.sock") as plane:
            spoken = await edge.says(*said)
            with trio.fail_after(10):
                await plane.wait_until(lambda: ("phone-1", "[red]nobody knows") in plane.pushed)
        assert spoken.exit_code == 0, spoken.output
        assert "phone-1: [red]nobody knows: not executed, says staff jo at 20" in spoken.stdout
        pushed = (await ledger.lookup("phone-1", "[red]nobody knows", None)).receipt
        assert pushed.resolution is not None
        assert pushed.resolution.outcome == "not_executed"
        assert pushed.resolution.actor == Actor(kind="staff", id="jo")
        assert (pushed.status, pushed.reason) == ("failed", "outcome_unknown")
        assert (await edge.shows(*said, "--by", "somebody else"))["resolution"]["actor"]["id"] == "jo"
        other = await edge.says("resolve", "[red]nobody knows", "--as", "committed", "--note", "no, it did")
        assert other.exit_code == 2
        assert "was resolved as not_executed by jo: that stands" in other.stderr
        settled = await edge.says("resolve", "done", "--as", "committed", "--note", "sure")
        assert settled.exit_code == 2
        assert "done of phone-1 is committed and needs no review" in settled.stderr
        assert "unknown → not executed" in (await edge.says("list")).stdout
    assert keys(await edge.shows("list", "--needs-review")) == []
    assert "the screen is unchanged" in (await edge.says("show", "[red]nobody knows")).stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("resolve", "k", "--as", "committed", "--note", "x"), "no daemon listens on"),
        (("resolve", "k", "--as", "committed", "--note", " "), "1 to 500 characters on one line"),
        (("resolve", "k", "--as", "perhaps", "--note", "x"), "'perhaps' is not one of"),
        (("resolve", "k", "--note", "x"), "Missing option '--as'"),
        (("list", "--since", "yesterday"), "is no 30m, 2h, 7d"),
        (("list",), "there is no ledger"),
    ],
)
async def test_what_cannot_be_done_is_said_in_a_line(edge, arguments, why) -> None:
    result = await edge.says(*arguments)
    assert result.exit_code == 2
    assert why in result.stderr


async def test_a_daemon_that_has_the_ledger_and_does_not_answer_is_named(edge) -> None:
    async with open_ledger(edge.config.ledger_path):
        silent = await edge.says("list")
    assert silent.exit_code == 2
    assert "no daemon listens on" in silent.stderr


async def test_staff_see_that_this_start_had_to_raise_the_epoch(edge) -> None:
    async with edge.running() as ledger:
        await fill(ledger)
        raised = ledger.epoch + 1
    edge.config.ledger_path.unlink()
    command = ["devices", "--config", str(edge.path)]
    async with edge.running():
        listed = await trio.to_thread.run_sync(CliRunner().invoke, main, command)
        nothing = await edge.says("show", "done")
    assert f"epoch {raised} since this start: the ledger file was missing" in listed.stdout
    assert "the ledger is younger than the key" in nothing.stderr
    async with edge.running():
        listed = await trio.to_thread.run_sync(CliRunner().invoke, main, command)
    assert "epoch" not in listed.stdout


@pytest.mark.parametrize("command", ["list", "show", "resolve", "export"])
def test_help_teaches_by_example(command) -> None:
    shown = CliRunner().invoke(main, ["receipts", command, "--help"]).output
    assert shown.count(f"edge-daemon receipts {command}") >= 2
