"""A technician's terminal: what to show on the phone, and where the procedure stands."""

from pathlib import Path

import cv2
import trio
from rich.console import Console

from calibration.errors import Declined
from calibration.procedure import Progress
from calibration.rig import ShowTarget
from calibration.targets import draw_charuco
from edge_daemon.staff.rig import Asker
from edge_daemon.upstream.service import ScreenSize

_WHAT = {
    "charuco": "the board: open {path} on the phone, full screen, without bars, in its own size",
    "dots": "the dots page: a page that keeps a dark dot where a finger comes down, with all old dots gone",
}


def console_asker(console: Console, screen: ScreenSize, targets: Path, *, wait: bool) -> Asker:
    """Asks a person at the terminal; with `wait` False it only says what must be on the phone by now."""

    async def ask(request: ShowTarget) -> None:
        path = targets / f"{request.target}.png"
        if request.target == "charuco":
            await trio.to_thread.run_sync(_write_board, path, screen)
        console.print(f"[bold]Show on the phone[/] {_WHAT[request.target].format(path=path)}")
        if wait:
            answer = await trio.to_thread.run_sync(
                console.input, "Enter when it is there, q to stop: ", abandon_on_cancel=True
            )
            if answer.strip().lower().startswith("q"):
                raise Declined("stopped by the person at the terminal")

    return ask


def _write_board(path: Path, screen: ScreenSize) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not cv2.imwrite(str(path), draw_charuco(screen.width_px, screen.height_px)):
        raise Declined(f"{path} cannot be written")


class StepPrinter:
    """Prints each step once, with its caution, and the count of touches as it grows. Called from any thread."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._step = 0

    def __call__(self, progress: Progress) -> None:
        if progress.number != self._step:
            self._step = progress.number
            self._console.print(
                f"[bold]{progress.number}/{progress.steps} {progress.step.title}[/]  [dim]{progress.step.caution}[/]"
            )
        if progress.detail:
            self._console.print(f"    {progress.detail} [dim]({progress.touches} touches)[/]")
