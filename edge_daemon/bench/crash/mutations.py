"""Ways to break the product that the oracle must notice. Applied in a worker process, before the product is loaded.

Each is what a careless change would do: a few lines of the product's source read otherwise in that process; no file is
changed. `directed.py` says in which histories each does harm.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType


class MutationStale(Exception):
    """The product has moved on and the lines of a mutation are not there any more, or in more places."""


@dataclass(frozen=True)
class Edit:
    """In this module these lines, which stand there so many times, read otherwise."""

    module: str
    lines: str
    broken: str
    times: int = 1


_BOOKS = "edge_daemon.ledger.books"
_BUILD = "edge_daemon.devices.build"
_DEVICE = "edge_daemon.devices.device"
_RECOVERY = "edge_daemon.devices.recovery"
_LEDGER = "edge_daemon.ledger.ledger"

_LATE_ACCEPT = """\
        known = await self.lookup(receipt.device_id, receipt.idempotency_key, None)
        if known.receipt is not None:
            from edge_daemon.ledger.types import Existing
            return Existing(known.receipt)
        late = self.__dict__.setdefault("_late", {})
        late[receipt.device_id, receipt.idempotency_key] = body
        publish(Accepted())
        return Accepted()

    async def settle"""
_LATE_SETTLE = """\
    def _late_settle(self, receipt: Receipt) -> int:
        late = self.__dict__.get("_late", {})
        accept = late.pop((receipt.device_id, receipt.idempotency_key), None)
        if accept is not None:
            accept()
        return self._books.settle(receipt)

    async def lookup("""
_ASK = """\
            answer = await self._ask(cmd_id, info.boot_id, self._ask_timeout_s)
            if isinstance(answer, Done):
                return answer
            raise answer
"""
_SEND_AGAIN = """\
        await self.wait_online()
        return await self.execute(cmd_id + 1, op, args, on_stage=on_stage, timeout_s=timeout_s)
"""

MUTATIONS: dict[str, tuple[Edit, ...]] = {
    # A key that was accepted before is accepted again.
    "no_dedup_check": (
        Edit(
            _BOOKS,
            "        if columns[0] is not None:\n            row = row_of(self._path, *columns)\n            if row.",
            "        if False:\n            row = row_of(self._path, *columns)\n            if row.",
        ),
        Edit(_BOOKS, '"INSERT INTO receipt (key, ', '"INSERT OR REPLACE INTO receipt (key, '),
    ),
    # Nothing is on disk before the board hears of it: the receipt is written with its outcome.
    "no_pending_write": (
        Edit(
            _LEDGER,
            '        return await self._writer.submit(Job(body, "write", publish))\n\n    async def settle',
            _LATE_ACCEPT,
        ),
        Edit(
            _LEDGER,
            "        body = partial(self._books.settle, receipt)\n",
            "        body = partial(self._late_settle, receipt)\n",
        ),
        Edit(_LEDGER, "    async def lookup(", _LATE_SETTLE),
    ),
    # Commits are left to the kernel.
    "no_fsync": (
        Edit(
            "edge_daemon.ledger.schema", '"PRAGMA synchronous = FULL"', '"PRAGMA synchronous = OFF"', times=2
        ),
    ),
    # When the link was lost on the way, the command is sent once more under an id of its own.
    "blind_resend": (Edit("edge_daemon.boards.board", _ASK, _SEND_AGAIN),),
    # The highest fencing token is not on disk: it is known until something of the device is read from there.
    "token_in_memory_only": (
        Edit(_BOOKS, "        if token > marks.highest_token:\n", "        if False:\n"),
    ),
    # A ledger that was put back says of keys that it never saw that nothing was dispatched.
    "found_false_after_restored_ledger": (
        Edit(_BOOKS, "complete = never_raised(ours) if epoch is None else epoch == ours", "complete = True"),
    ),
    # What waited longer than it may is begun all the same.
    "expiry_ignored": (Edit(_DEVICE, "        if now_ns >= job.expires_ns:", "        if False:"),),
    # The same of a holder whose lease ran out meanwhile.
    "lease_end_ignored": (
        Edit("edge_daemon.devices.gate", "        if now_ns >= lease_ends_ns:", "        if False:"),
    ),
    # What was taken back is told so, and stays in line.
    "cancel_ignored": (Edit(_DEVICE, "            self._line.remove(job)\n", ""),),
    # A hold is known until something of the device is read from the disk.
    "hold_in_memory_only": (
        Edit(
            _BOOKS,
            "        return self._keep(device_id, replace(marks, hold=hold))",
            "        return replace(marks, hold=hold)",
        ),
    ),
    # The same of the screen that a person has.
    "park_in_memory_only": (
        Edit(
            _BOOKS,
            "        return self._keep(device_id, replace(self._marks_of(device_id), parked_note=note))",
            "        return replace(self._marks_of(device_id), parked_note=note)",
        ),
    ),
    # A latched emergency stop keeps nothing from being given to the board.
    "stop_ignored": (
        Edit("edge_daemon.devices.parts", "board.flags is not None and board.flags.estopped:", "False:"),
    ),
    # A key that was accepted is taken for the same action, whatever is sent under it.
    "conflict_ignored": (
        Edit(_BOOKS, "            if row.fingerprint != fingerprint:", "            if False:"),
    ),
    # While a key is being accepted, nothing is known of it.
    "asked_too_early": (
        Edit(
            _DEVICE,
            "            if answer.found or self._jobs.get(key) in (None, job):\n",
            "            if True:\n",
        ),
        Edit(
            _DEVICE,
            "                await job.admitted.wait()\n            answer = ",
            "                pass\n            answer = ",
        ),
    ),
    # A swipe ends half way.
    "swipe_cut_short": (
        Edit(
            "edge_daemon.devices.hand_touch",
            "self._contact(action.to_x, action.to_y, order.orientation)",
            "self._contact((action.from_x + action.to_x) / 2, action.to_y, order.orientation)",
        ),
    ),
    # A character is left out in the middle of a text.
    "character_left_out": (
        Edit(
            "edge_daemon.boards.hid",
            "utf8 = text.encode()\n        go",
            "utf8 = (text[:3] + text[4:]).encode()\n        go",
        ),
    ),
    # Command ids begin anew with the machine's uptime, below what its boards remember.
    "ids_since_boot": (
        Edit(
            _BUILD,
            "        house.ledger.lived_ns,\n        house.random_bits,",
            "        house.monotonic_ns,\n        house.random_bits,",
        ),
        Edit(_BUILD, "max((highest_given(board) for board in house.boards.values()), default=0)", "0"),
    ),
    # A board whose line is lost while it is asked is not asked again.
    "asked_once": (
        Edit(
            _RECOVERY,
            "while answer is None or (isinstance(answer, OutcomeUnknown) and not answer.final):",
            "while answer is None:",
        ),
    ),
    # A board that is away is soon given up.
    "given_up_early": (Edit(_RECOVERY, "BOARD_WAIT_S = 30.0", "BOARD_WAIT_S = 0.5"),),
    # What a person says of an unknown outcome is not pushed where the receipt was acknowledged before.
    "resolution_not_pushed": (
        Edit(
            _BOOKS,
            "        return Resolved(row.id, receipt, acknowledged=False)",
            "        said = row.filed._replace(settled=self._last_settled, review=False)\n"
            '        self._sql.execute("UPDATE receipt SET acknowledged = ?, filed = ? WHERE id = ?", '
            "(said.acknowledged, said.check, row.id))\n"
            "        return Resolved(row.id, receipt, row.acknowledged)",
        ),
    ),
    # What retention lets go leaves nothing behind.
    "spent_keys_forgotten": (
        Edit(
            _BOOKS,
            "            remember_spent(self._sql, self._path, row.key)\n",
            "",
        ),
    ),
    # After a restart nobody is told what had become final before.
    "outbox_in_memory_only": (
        Edit(
            _BOOKS,
            "        return [row_id for (row_id,) in found], damages\n",
            "        return [], damages\n",
        ),
    ),
}


def mutate(name: str) -> None:
    """From now on this process loads the product broken. Raises ValueError for a name that is none of MUTATIONS.

    Raises MutationStale when a module that it edits is loaded already; importing it raises MutationStale when its
    lines are not there, or in other places too.
    """
    if name not in MUTATIONS:
        raise ValueError(f"no mutation is called {name!r}; there are {', '.join(MUTATIONS)}")
    edits = MUTATIONS[name]
    for edit in edits:
        if edit.module in sys.modules:
            raise MutationStale(
                f"{edit.module} is loaded already; break it before anything of the product is"
            )
    sys.meta_path.insert(0, _Breaker(edits))


class _Breaker(MetaPathFinder):
    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        edits = [edit for edit in self._edits if edit.module == fullname]
        spec = PathFinder.find_spec(fullname, path, target) if edits else None
        if spec is not None and spec.origin is not None:
            spec.loader = _BrokenLoader(fullname, spec.origin, edits)
        return spec


class _BrokenLoader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, edits: Sequence[Edit]) -> None:
        super().__init__(fullname, path)
        self._edits = edits

    def get_code(self, fullname: str) -> CodeType:
        """Past the compiled files: neither must a sound one be used, nor a broken one be left behind."""
        source = self.get_data(self.path).decode()
        for edit in self._edits:
            found = source.count(edit.lines)
            if found != edit.times:
                raise MutationStale(
                    f"{fullname} has {edit.lines!r} {found} times, not {edit.times}; adapt the mutation"
                )
            source = source.replace(edit.lines, edit.broken)
        return compile(source, self.path, "exec", dont_inherit=True)
