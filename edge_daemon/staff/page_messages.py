"""What the rig and the calibration page on the phone tell each other, as JSON."""

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from calibration.screen import ScreenGeometry
from calibration.targets import Turn
from edge_daemon.contract.base import Data

Target = Literal["charuco", "dots"]
Showing = Literal["menu", "charuco", "dots", "wrong_size", "wrong_turn", "turned", "hidden"]
"""`turned`: the page has just been turned by itself and says so; `hidden`: another app or page is in front."""

_Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]
_Px = Annotated[int, Meta(ge=0, le=20_000)]
_Place = Annotated[float, Meta(ge=0, le=20_000)]


class Order(Data, frozen=True):
    """What the page is to show. `dots` begins with none."""

    number: int
    show: Target
    turn: Turn


class TouchReport(Data, frozen=True):
    """One finger that came down on the dots page; px of the portrait screen, from its top-left edge."""

    number: Annotated[int, Meta(ge=1, le=1_000_000_000)]
    x_px: _Place
    y_px: _Place
    turn: Turn
    at_ms: Annotated[float, Meta(ge=0, le=1e12)]
    fingers: Annotated[int, Meta(ge=1, le=20)]


class PageReport(Data, frozen=True):
    """What the page shows, and its touches that were not yet answered for."""

    page_id: Annotated[str, Meta(min_length=8, max_length=64)]
    report: _Count
    order: _Count
    showing: Showing
    canvas_width_px: _Px
    canvas_height_px: _Px
    dpr: Annotated[float, Meta(gt=0, le=20)]
    turn: Turn | None
    turns: _Count
    touches: Annotated[tuple[TouchReport, ...], Meta(max_length=64)]


@dataclass(frozen=True, slots=True)
class PageState:
    """What the page says of itself. `turn` is None on a device that does not say which way round it lies."""

    showing: Showing
    canvas_width_px: int
    canvas_height_px: int
    dpr: float
    turn: Turn | None
    turns: int
    """How often the page was turned since it was loaded."""

    def fills(self, screen: ScreenGeometry) -> bool:
        """Whether the page has exactly the screen's px, the way it is turned."""
        size = (self.canvas_width_px, self.canvas_height_px)
        wanted = (screen.width_px, screen.height_px)
        return size == (wanted[::-1] if self.turn in ("landscape_left", "landscape_right") else wanted)


@dataclass(frozen=True, slots=True)
class PageTouch:
    """One finger that came down, as the phone itself measured it: px of the portrait screen."""

    x_px: float
    y_px: float
    turn: Turn
    fingers: int
    """How many were on the glass then, this one included."""
    at_ms: float
    """By the page's own clock."""


def state_of(report: PageReport) -> PageState:
    return PageState(
        showing=report.showing,
        canvas_width_px=report.canvas_width_px,
        canvas_height_px=report.canvas_height_px,
        dpr=report.dpr,
        turn=report.turn,
        turns=report.turns,
    )


REPORT_DECODER = msgspec.json.Decoder(PageReport)
ORDER_ENCODER = msgspec.json.Encoder()
