"""A board as the daemon sees it: kept online for as long as it runs, one command at a time, never twice."""

import logging
import os
import time
from collections.abc import Awaitable, Callable

import trio

from edge_daemon.boards.counters import BoardCounters, CounterBook, LineCounters
from edge_daemon.boards.errors import CommandFault, NotExecuted, NotSent, OutcomeUnknown, PortError
from edge_daemon.boards.framelog import FrameLog
from edge_daemon.boards.hearing import Hearing
from edge_daemon.boards.info import BoardInfo, BoardKind
from edge_daemon.boards.link import HostLink, LinkNotReady
from edge_daemon.boards.link_events import (
    CommandAccepted,
    CommandDone,
    CommandFaulted,
    ContactMade,
    DataRefused,
    DataTaken,
    FlagsChanged,
    LinkEvent,
    Lost,
    MovedByItself,
    Online,
    QueryAnswered,
    StopCleared,
    StopLatched,
)
from edge_daemon.boards.port import Port, SerialPort
from edge_daemon.boards.session import Session
from edge_daemon.boards.status import (
    BoardAnswer,
    BoardEvent,
    BoardFlags,
    BoardOffline,
    BoardOnline,
    BoardStatus,
    Done,
    FlagsReported,
    HandMoved,
    Stage,
    StatusChanged,
    StopReported,
    moved_cause,
    read_flags,
)
from edge_daemon.boards.turn import Turn
from firmware import wire

logger = logging.getLogger(__name__)

# USB comes back within a second or two; a board that is not there costs little when looked for each 2 s.
BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 2.0
ASK_AGAIN_S = 0.05
# A subscriber that falls this far behind has stopped listening; it finds its channel closed.
SUBSCRIBER_BACKLOG = 256
# What the link tells of the board itself; everything else is an answer, and only whoever asked cares.
_TELLING = frozenset((Online, Lost, MovedByItself, FlagsChanged, StopLatched, StopCleared))

OnStage = Callable[[Stage, int, int], None]
OpenPort = Callable[[str, int], Awaitable[Port]]


class Board:
    """One board on one port. ``run()`` must be running for anything else to work.

    At most one command is on its way at a time; a cmd_id (1..2^64-1) is used once for ever. Let them grow:
    the board is certain that it never had a command only above the ids that it has forgotten.
    """

    def __init__(
        self,
        name: str,
        port_path: str,
        expected_uid: str | None,
        kind: BoardKind,
        *,
        baudrate: int = 115_200,
        ask_timeout_s: float = 3.0,
        now_ns: Callable[[], int] = time.monotonic_ns,
        open_port: OpenPort = SerialPort.open,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.name = name
        self.port_path = port_path
        self.kind: BoardKind = kind
        self.frame_log = FrameLog()
        self._expected_uid = expected_uid
        self._baudrate = baudrate
        self._ask_timeout_s = ask_timeout_s
        self._now_ns = now_ns
        self._open_port = open_port
        self._random_bytes = random_bytes
        self._status: BoardStatus = BoardOffline("its port has not been opened yet")
        self._status_changed = trio.Event()
        self._port_failed = True
        self._session: Session | None = None
        self._hearings: list[Hearing] = []
        self._subscribers: list[trio.MemorySendChannel[BoardEvent]] = []
        self._turn = Turn()
        self._book = CounterBook()
        self.last_info: BoardInfo | None = None

    # -- state ----------------------------------------------------------------------------------------

    @property
    def status(self) -> BoardStatus:
        """BoardOnline with who it is, or BoardOffline with why."""
        return self._status

    @property
    def flags(self) -> BoardFlags | None:
        """The board's latest status flags; None while it is offline."""
        session = self._session
        return read_flags(session.link.flags) if session is not None and session.link.online else None

    @property
    def line(self) -> LineCounters | None:
        """How the line of the present connection is doing; None while no port is open."""
        return LineCounters.of(self._session.link) if self._session is not None else None

    @property
    def counters(self) -> BoardCounters:
        """Over all connections since the daemon's start, and the restarts of the board that it saw."""
        return self._book.read(self._session.link if self._session is not None else None)

    @property
    def connections(self) -> int:
        """How often the board has come online."""
        return self._book.connections

    def events(self) -> "trio.MemoryReceiveChannel[BoardEvent]":
        """A new subscription: changes of status, flags and stop, and moves that no command was the reason of.

        A subscriber that lets SUBSCRIBER_BACKLOG events pile up finds its channel closed after them. Close
        the channel to unsubscribe.
        """
        send, receive = trio.open_memory_channel[BoardEvent](SUBSCRIBER_BACKLOG)
        self._subscribers.append(send)
        return receive

    async def wait_online(self) -> BoardInfo:
        """Wait until the board is online; returns at once if it is."""
        while not isinstance(self._status, BoardOnline):
            await self._status_changed.wait()
        return self._status.info

    async def status_other_than(self, known: BoardStatus) -> BoardStatus:
        """Wait until the status is not ``known`` any more. Cancelling loses nothing."""
        while self._status == known:
            await self._status_changed.wait()
        return self._status

    # -- commands -------------------------------------------------------------------------------------

    async def execute(
        self,
        cmd_id: int,
        op: int,
        args: bytes,
        *,
        on_stage: OnStage | None = None,
        timeout_s: float = 30.0,
        boot_id: int | None = None,
    ) -> Done:
        """Have the board carry out one operation, at most once, and return when it has finished.

        Waits its turn behind other commands. ``on_stage(stage, board_us, mono_ns)`` is called in this task.
        When the link is lost on the way and the board comes back within ask_timeout_s on the same boot, it
        is asked what became of the command. A command without outcome after timeout_s is given up: this end
        falls silent, which makes the board abort and lift, and then asks. ``boot_id``: the boot that the
        command was meant for; a board that has restarted since gets nothing of it, which is NotSent.

        Raises NotSent, CommandFault, NotExecuted, OutcomeUnknown, or BodyError for arguments too long.
        Cancelled on the way, the board aborts likewise, and ask() tells the outcome afterwards.
        """
        async with self._turn:
            session, info = self._online_session()
            if boot_id is not None and info.boot_id != boot_id:
                raise NotSent(
                    f"the board has restarted since this was decided (reset cause: {info.reset_cause})"
                )
            first_byte = session.next_byte()
            outcome: LinkEvent | None = None
            with Hearing(self._hearings, CommandAccepted, ContactMade, CommandDone, CommandFaulted) as heard:
                session.link.command(cmd_id, op, args, self._now_ns())
                session.pump()
                try:
                    with trio.move_on_after(timeout_s):
                        outcome = await self._follow(session, heard, on_stage)
                finally:
                    if outcome is None:
                        session.drop(f"command {cmd_id} was given up before its outcome was known")
            if isinstance(outcome, CommandDone):
                return Done.of(outcome, session.link.clock)
            if isinstance(outcome, CommandFaulted):
                raise _fault(outcome)
            if not session.has_left(first_byte):
                raise NotSent("the link was lost before the first byte left")
            answer = await self._ask(cmd_id, info.boot_id, self._ask_timeout_s)
            if isinstance(answer, Done):
                return answer
            raise answer

    async def ask(self, cmd_id: int, boot_id: int, *, timeout_s: float | None = None) -> BoardAnswer:
        """What became of a command that was given to the board on that boot; the errors come as values.

        Waits up to timeout_s (default: ask_timeout_s) for the board to be online. OutcomeUnknown with
        final=False means that it could not be asked.
        """
        async with self._turn:
            return await self._ask(cmd_id, boot_id, self._ask_timeout_s if timeout_s is None else timeout_s)

    async def send_data(self, op: int, args: bytes) -> None:
        """Put data into the board's buffer (op >= OP_DATA_FIRST); nothing reaches the phone.

        Raises NotSent when the link was or went down – the buffer is then not to be relied on –, and
        CommandFault when the board refuses the data.
        """
        async with self._turn:
            session, _ = self._online_session()
            answer: LinkEvent | None = None
            with Hearing(self._hearings, DataTaken, DataRefused) as heard:
                session.link.data(op, args, self._now_ns())
                session.pump()
                try:
                    answer = await session.listen(heard)
                finally:
                    if answer is None:
                        session.drop("sending data was given up")
            if isinstance(answer, Lost):
                raise NotSent(answer.reason)
            if isinstance(answer, DataRefused):
                raise CommandFault(answer.code, refused=True, effect=False)

    async def estop(self) -> None:
        """Stop the board at once, past any command; returns when the stop is latched.

        Raises NotSent when the board is offline (it has then made itself safe), or OutcomeUnknown when the
        link was lost before the board confirmed.
        """
        await self._exchange(StopLatched, lambda link: link.estop(self._now_ns()))

    async def clear_estop(self) -> None:
        """Lift the latched stop; returns when the board has confirmed. Raises as estop() does."""
        await self._exchange(StopCleared, lambda link: link.clear_estop(self._now_ns()))

    async def _exchange(self, answer: type[LinkEvent], ask: Callable[[HostLink], None]) -> None:
        session, _ = self._online_session()
        with Hearing(self._hearings, answer) as heard:
            try:
                ask(session.link)
            except LinkNotReady as err:
                raise NotSent(str(err)) from err
            session.pump()
            event = await session.listen(heard)
        if isinstance(event, Lost):
            raise OutcomeUnknown(event.reason, final=False)

    async def _follow(self, session: Session, heard: Hearing, on_stage: OnStage | None) -> LinkEvent:
        """Report stages until the command has ended or the link is lost; returns that event."""
        while True:
            event = await session.listen(heard)
            if not isinstance(event, CommandAccepted | ContactMade):
                return event
            if on_stage is not None:
                stage: Stage = "accepted" if isinstance(event, CommandAccepted) else "contact"
                on_stage(stage, event.board_us, session.link.clock.to_host_ns(event.board_us))

    async def _ask(self, cmd_id: int, boot_id: int, timeout_s: float) -> BoardAnswer:
        # A question needs no deadline of its own: the link repeats it, and gives itself up within seconds.
        deadline = trio.current_time() + timeout_s
        asked = False
        while True:
            if not isinstance(self._status, BoardOnline):
                with trio.move_on_at(deadline):
                    await self.wait_online()
            if not isinstance(self._status, BoardOnline):
                return _not_told(asked, timeout_s)
            info = self._status.info
            if info.boot_id != boot_id:
                return OutcomeUnknown(
                    f"the board has restarted since (reset cause: {info.reset_cause})", final=True
                )
            session, _ = self._online_session()
            with Hearing(self._hearings, QueryAnswered) as heard:
                session.link.query(cmd_id, self._now_ns())
                session.pump()
                event = await session.listen(heard)
            if isinstance(event, QueryAnswered):
                answer = _answer(event, session)
                if answer is not None:
                    return answer
                asked = True
                await trio.sleep(ASK_AGAIN_S)
            if trio.current_time() >= deadline:
                return _not_told(asked, timeout_s)

    def _online_session(self) -> tuple[Session, BoardInfo]:
        if self._session is None or isinstance(self._status, BoardOffline):
            raise NotSent(self._status.reason if isinstance(self._status, BoardOffline) else "port closed")
        return self._session, self._status.info

    # -- supervision ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep the board online until cancelled: open, HELLO, OPEN, heartbeats, and again after a loss."""
        backoff_s = BACKOFF_FIRST_S
        try:
            while True:
                if await self._connect_once():
                    backoff_s = BACKOFF_FIRST_S
                await trio.sleep(backoff_s)
                backoff_s = min(backoff_s * 2, BACKOFF_MAX_S)
        finally:
            self._set_status(BoardOffline("this daemon has stopped looking after it"))

    async def _connect_once(self) -> bool:
        """One connection from open to loss; returns whether the board was online in it."""
        try:
            port = await self._open_port(self.port_path, self._baudrate)
        except PortError as err:
            self._port_failed = True
            self._set_status(BoardOffline(str(err)))
            return False
        if self._port_failed:
            self._port_failed = False
            self._set_status(BoardOffline(f"{self.port_path} is open; waiting for the board's HELLO"))
        was_online = False
        try:
            session = await self._run_session(port, None)
            was_online = session.was_online
            # A board that said HELLO waits on this very line; opening the port anew might reset it once more.
            while session.link.next_hello is not None:
                port.resume_writing()
                session = await self._run_session(port, session.link.next_hello)
                was_online = was_online or session.was_online
        finally:
            await port.aclose()
        return was_online

    async def _run_session(self, port: Port, hello: wire.Frame | None) -> Session:
        """One session from HELLO to loss."""
        link = HostLink(
            int.from_bytes(self._random_bytes(4), "little") or 1,
            self._now_ns(),
            expected_uid=self._expected_uid,
            expected_kind=self.kind,
            log=self.frame_log,
            hello=hello,
        )
        session = Session(port, link, self._on_link_event, self._now_ns)
        self._session = session
        try:
            await session.run()
        finally:
            session.drop("this daemon has stopped looking after it")
            self._session = None
            self._book.ended(link)
        if session.was_online and not session.port_gone:
            logger.warning("board %s lost; its last frames:\n%s", self.name, self.frame_log.dump())
        return session

    # -- events ---------------------------------------------------------------------------------------

    def _on_link_event(self, event: LinkEvent) -> None:
        if type(event) in _TELLING:
            self._take_note(event)
        for hearing in self._hearings:
            hearing.hear(event)

    def _take_note(self, event: LinkEvent) -> None:
        if isinstance(event, Online):
            self._book.online(event.info)
            self.last_info = event.info
            self._set_status(BoardOnline(event.info))
        elif isinstance(event, Lost):
            self._set_status(BoardOffline(event.reason))
        elif isinstance(event, MovedByItself):
            self._tell_moved(event)
        elif isinstance(event, FlagsChanged):
            self._publish(FlagsReported(read_flags(event.flags)))
        elif isinstance(event, StopLatched | StopCleared):
            self._publish(StopReported(isinstance(event, StopLatched)))

    def _tell_moved(self, event: MovedByItself) -> None:
        if self._session is not None:
            moved_ns = self._session.link.clock.to_host_ns(event.board_us)
            self._publish(HandMoved(moved_cause(event.cause), event.board_us, moved_ns))

    def _set_status(self, status: BoardStatus) -> None:
        if status == self._status:
            return
        self._status = status
        logger.info("board %s: %s", self.name, status)
        self._status_changed.set()
        self._status_changed = trio.Event()
        self._publish(StatusChanged(status))

    def _publish(self, event: BoardEvent) -> None:
        for subscriber in list(self._subscribers):
            try:
                subscriber.send_nowait(event)
            except (trio.WouldBlock, trio.BrokenResourceError):
                # Behind by the whole backlog, or gone: a closed channel is honest, a gap would not be.
                subscriber.close()
                self._subscribers.remove(subscriber)


def _fault(event: CommandFaulted) -> CommandFault:
    return CommandFault(event.code, refused=event.refused, effect=event.effect, board_us=event.board_us)


def _not_told(asked: bool, timeout_s: float) -> OutcomeUnknown:
    if asked:
        return OutcomeUnknown(f"the board was still carrying it out after {timeout_s:g} s", final=False)
    return OutcomeUnknown(f"the board could not be asked within {timeout_s:g} s", final=False)


def _answer(event: QueryAnswered, session: Session) -> BoardAnswer | None:
    """The answer to a query; None while the command is still being carried out."""
    if isinstance(event.outcome, CommandDone):
        return Done.of(event.outcome, session.link.clock)
    if isinstance(event.outcome, CommandFaulted):
        return _fault(event.outcome)
    if event.state == wire.STATE_ABSENT:
        return NotExecuted("the board, on the same boot, never received it")
    if event.state in (wire.STATE_ACCEPTED, wire.STATE_RUNNING):
        return None
    return OutcomeUnknown("the board no longer remembers that far back", final=True)
