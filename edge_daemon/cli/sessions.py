"""A technician's session at a rig, for the commands that touch it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from edge_daemon.config import Config
from edge_daemon.contract import Refused
from edge_daemon.staff.askers import Shower, by_page
from edge_daemon.staff.conditions import screen_of
from edge_daemon.staff.console import StepBar, Terminal, by_files, say_page
from edge_daemon.staff.page_server import PageListen, page_server
from edge_daemon.upstream.client import StaffClient, connect_staff

OPEN_PAGE_S = 180.0
"""For a person to take the phone, open the address and go full screen."""


@dataclass(frozen=True)
class Showing:
    """How the phone comes to show the targets: from files by hand, or from a page that is served."""

    targets: Path
    page: tuple[str, int] | None
    yes: bool


@dataclass(frozen=True)
class AtTheRig:
    """What a command works with while its session lasts."""

    client: StaffClient
    device_id: str
    terminal: Terminal
    bar: StepBar

    async def picture(self) -> bytes | None:
        """What the camera sees now, a JPEG; None when it does not say."""
        try:
            return (await self.client.look(self.device_id)).jpeg
        except Refused:
            return None


@asynccontextmanager
async def at_the_rig(
    config: Config, device_id: str, console: Console, showing: Showing
) -> AsyncIterator[AtTheRig]:
    """Raises `Refused`, `EdgeGone`, EndpointRefused for a page that cannot be served, TargetImpossible."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connect_staff(Path(config.staff.unix_socket), "calibrate"))
        screen = screen_of(await client.rig_facts(device_id))
        show: Shower
        if showing.page is not None:
            # Whoever types an address means it, also one beyond loopback.
            listen = PageListen(*showing.page, allow_beyond_loopback=True)
            pages = await stack.enter_async_context(page_server(listen, screen))
            say_page(console, pages.url)
            show = by_page(pages, OPEN_PAGE_S)
        else:
            show = by_files(console, screen, showing.targets, wait=not showing.yes)
        bar = StepBar(console)
        stack.enter_context(bar.shown())
        yield AtTheRig(client, device_id, Terminal(console, bar, show, yes=showing.yes), bar)
