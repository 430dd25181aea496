"""A technician's terminal: steps with their cautions, a bar with the time that is left, questions and the verdict."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import trio
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.prompt import Prompt

from calibration.acceptance import Acceptance
from calibration.errors import Declined
from calibration.procedure import Progress as Standing
from calibration.rig import Answer, Judge, PointRefused, RedoPoints, Request, ShowTarget
from calibration.screen import ScreenGeometry
from calibration.targets.files import TargetFiles, qr_terminal, write_targets
from edge_daemon.staff.askers import Shower
from edge_daemon.staff.verdict import verdict_table

T = TypeVar("T")


class StepBar:
    """Prints each step once with its caution, and one bar below. Called from any thread."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=1.0, left="")
        self._step = 0

    @contextmanager
    def shown(self) -> Iterator[None]:
        self._bar.start()
        try:
            yield
        finally:
            self._bar.stop()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """The bar is out of the way of a question."""
        self._bar.stop()
        try:
            yield
        finally:
            self._bar.start()

    def __call__(self, standing: Standing) -> None:
        if standing.number != self._step:
            self._step = standing.number
            self._console.print(
                f"[bold]{standing.number}/{standing.steps} {standing.step.title}[/]  [dim]{standing.step.caution}[/]"
            )
        if standing.detail:
            self._console.print(f"    {standing.detail}", style="dim", highlight=False)
        self._bar.update(
            self._task,
            completed=standing.fraction,
            description=f"{standing.touches} touches",
            left=left_text(standing.remaining_s),
        )


def left_text(remaining_s: float | None) -> str:
    """How long it will take, for a person."""
    if remaining_s is None:
        return "time left: not known yet"
    minutes, seconds = divmod(max(0, round(remaining_s)), 60)
    return f"{minutes}:{seconds:02} left"


class Terminal:
    """Answers by a person at the terminal; with `yes` nobody is asked what can be decided without."""

    def __init__(self, console: Console, bar: StepBar, show: Shower, *, yes: bool) -> None:
        self._console = console
        self._bar = bar
        self._show = show
        self._yes = yes

    async def answer(self, request: Request) -> Answer:
        match request:
            case ShowTarget():
                with self._bar.aside():
                    await self._show(request)
                return "done"
            case PointRefused(step=step, point=point, reason=reason):
                self._console.print(f"[yellow]place {point} of step {step}: {reason}[/]")
                return "redo" if self._yes else await self._ask(self._redo_or_stop)
            case Judge(acceptance=acceptance, places_mm=places_mm):
                self._console.print(verdict_table(acceptance))
                if self._yes:
                    return "accept" if acceptance.passed else "reject"
                return await self._ask(lambda: self._judged(acceptance, len(places_mm)))

    async def _ask(self, question: Callable[[], T]) -> T:
        with self._bar.aside():
            return await asked(question)

    def _redo_or_stop(self) -> Answer:
        if Prompt.ask(
            "touch it again, or stop?", choices=["redo", "stop"], default="redo", console=self._console
        ) == ("stop"):
            raise Declined("stopped by the person at the terminal")
        return "redo"

    def _judged(self, acceptance: Acceptance, places: int) -> Answer:
        suggestion = "accept" if acceptance.passed else "reject"
        while True:
            said = Prompt.ask(
                f"accept, reject, or the numbers of places to touch again (1 to {places}, such as 3,7)",
                default=suggestion,
                console=self._console,
            ).strip()
            if said == "reject" or (said == "accept" and acceptance.passed):
                return said  # type: ignore[return-value]
            if said == "accept":
                self._console.print(
                    "a calibration beyond its limits cannot be accepted; reject it, or repeat places"
                )
                continue
            points = numbers_in(said, places)
            if points is not None:
                return RedoPoints(points)
            self._console.print(f"{said!r} is neither a word nor numbers from 1 to {places}")


def numbers_in(text: str, highest: int) -> tuple[int, ...] | None:
    """The numbers of a list such as "3,7", each once and within 1..highest; None for anything else."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) <= 4 for part in parts):
        return None
    numbers = tuple(dict.fromkeys(int(part) for part in parts))
    return numbers if all(1 <= number <= highest for number in numbers) else None


async def asked(question: Callable[[], T]) -> T:
    """A question that waits for a key. Raises Declined where nobody can answer."""
    try:
        return await trio.to_thread.run_sync(question, abandon_on_cancel=True)
    except EOFError as error:
        raise Declined(
            "nobody answers at this terminal; use --yes where something else shows the pages"
        ) from error


def by_files(console: Console, screen: ScreenGeometry, folder: Path, *, wait: bool) -> Shower:
    """A person opens the page or pictures from a folder; with `wait` False it is only said what must be there."""
    written: list[TargetFiles] = []

    async def show(request: ShowTarget) -> None:
        if not written:
            written.append(await trio.to_thread.run_sync(write_targets, folder, screen))
        files = written[0]
        if request.target == "charuco":
            what = f"the board: {files.boards[request.turn]}, or the page {files.page}"
        else:
            what = (
                f"the dots page: {files.page}, in which a dot stays where a finger comes down, old dots gone"
            )
        console.print(
            f"[bold]Show on the phone[/], full screen, turned {request.turn}: {what}", soft_wrap=True
        )
        if wait:
            await asked(lambda: enter_or_stop(console))

    return show


def enter_or_stop(console: Console) -> None:
    if console.input("Enter when it is there, q to stop: ").strip().lower().startswith("q"):
        raise Declined("stopped by the person at the terminal")


def say_page(console: Console, url: str) -> None:
    """How the phone finds the page that this run serves."""
    console.print(f"Open on the phone, full screen: [bold]{url}[/]", soft_wrap=True)
    if console.is_terminal:
        console.print(qr_terminal(url), highlight=False, markup=False)
