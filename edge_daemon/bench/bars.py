"""The progress bars of a suite, one below the other."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class SuiteBars:
    """To be shown while a `with` block runs; a suite's own watch says when which of them moves."""

    def __init__(self, console: Console, *, only_on_terminal: bool = True) -> None:
        """only_on_terminal: whoever is no terminal gets no bars; the watch prints lines then."""
        self._console = console
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            disable=only_on_terminal and not console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()
