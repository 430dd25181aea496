"""Names and numbers by which requests, holders and people are told apart."""

from typing import Annotated, Literal

from msgspec import Meta

from edge_daemon.contract.base import Data

LEASE_MS = 600_000
"""A lease lasts ten minutes; a renewal slides it."""

DeviceId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z")]
IdempotencyKey = Annotated[str, Meta(pattern=r"^(?!agent:)[\x20-\x7e]{1,128}\Z")]
_PRINTABLE = r"^[^\x00-\x1f\x7f]{1,128}\Z"
OrgId = Annotated[str, Meta(pattern=_PRINTABLE)]
LeaseId = Annotated[str, Meta(pattern=_PRINTABLE)]
FrameId = Annotated[str, Meta(pattern=_PRINTABLE)]
FencingToken = Annotated[int, Meta(ge=1, le=2**53 - 1)]
"""Grows with each new holder. Bounded by what a JSON number carries exactly."""

Epoch = Annotated[int, Meta(ge=1, le=2**53 - 1)]
"""Of a ledger: raised when it is made anew or restored, so that older keys are known to be older."""

BackendKind = Literal["robot_hand", "esp32_hid"]
DeviceKind = Literal["robot", "physical"]
DeviceStatus = Literal["online", "offline", "unauthorized", "unknown"]
Orientation = Literal["portrait", "landscape_left", "portrait_upside_down", "landscape_right"]


class Actor(Data, frozen=True, kw_only=True):
    """Who asks. `person` is a signed-in person acting directly."""

    kind: Literal["person", "api_key", "copilot", "run", "system", "staff"]
    id: Annotated[str, Meta(pattern=_PRINTABLE)] | None = None
    on_behalf_of: Annotated[str, Meta(pattern=_PRINTABLE)] | None = None


class Lease(Data, frozen=True, kw_only=True):
    """The holder's claim, carried by each request: a duration, because a Pi has no clock of its own."""

    lease_id: LeaseId
    fencing_token: FencingToken
    remaining_ms: Annotated[int, Meta(ge=0, le=LEASE_MS)]
    """How long the lease still lasts from the moment this message was sent."""
