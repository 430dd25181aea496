"""Every message of the plane protocol as a typed struct. `PROTOCOL.md` beside this file says it in prose.

A request's fields lie flat beside its `type` and `id`; an answer carries `replyTo` and one value under a
name.
"""

from typing import Annotated, get_args

from msgspec import Meta

from edge_daemon.contract import (
    Actor,
    DeviceDescription,
    DeviceId,
    Dispatch,
    Epoch,
    ErrorInfo,
    IdempotencyKey,
    Look,
    Outcome,
    Picture,
    Progress,
    Receipt,
    ReceiptAnswer,
    ReceiptPage,
    ReceiptQuery,
    ResolvedAs,
    ReviewNote,
)
from edge_daemon.contract.base import Data
from edge_daemon.upstream.service import (
    CalibrationKind,
    CalibrationOutcome,
    CalibrationStage,
    DriftFound,
    RawPicture,
    RigFacts,
    StaffTouchAt,
    WantedOrientation,
)

PROTOCOL = 3
"""The highest protocol version this edge speaks."""
OLDEST_PROTOCOL: dict[str, int] = {"plane": 1, "staff": 2}
"""By the listener's role. Version 2 changed what staff say; version 3 only added, as both did to a plane."""

NONCE_BYTES = 32
PROOF_BYTES = 32
# 2200-01-01: beyond it, an offset added to a clock reading could leave what ISO-8601 can say.
MAX_UNIX_MS = 7_258_118_400_000

RequestId = Annotated[int, Meta(ge=0, le=2**32 - 1)] | Annotated[str, Meta(pattern=r"^[\x20-\x7e]{1,64}\Z")]
PeerId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")]
Nonce = Annotated[bytes, Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
Proof = Annotated[bytes, Meta(min_length=PROOF_BYTES, max_length=PROOF_BYTES)]
MonotonicNs = Annotated[int, Meta(ge=0, le=2**63 - 1)]
UnixMs = Annotated[float, Meta(ge=0.0, le=MAX_UNIX_MS)]
HoldHint = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,200}\Z")]


class Message(Data, frozen=True, kw_only=True, tag_field="type"):
    pass


class _Request(Message, frozen=True, kw_only=True):
    id: RequestId
    """Chosen by whoever asks; free again once it is answered."""


class _DeviceRequest(_Request, frozen=True, kw_only=True):
    device_id: DeviceId


class _Answer(Message, frozen=True, kw_only=True):
    reply_to: RequestId


# --- both ways ---------------------------------------------------------------------------------------------


class Ping(Message, frozen=True, kw_only=True, tag="ping"):
    monotonic_ns: MonotonicNs
    """The sender's own monotonic clock; to be given back unread."""


class Pong(Message, frozen=True, kw_only=True, tag="pong"):
    monotonic_ns: MonotonicNs
    plane_unix_ms: UnixMs | None = None
    """The plane's clock while it answered; the edge never sends it."""


# --- towards the edge: handshake ---------------------------------------------------------------------------


class Hello(Message, frozen=True, kw_only=True, tag="hello"):
    protocol: int
    plane_id: PeerId
    epoch: Epoch | None = None
    """The highest ledger epoch the plane remembers of this edge."""
    nonce: Nonce | None = None
    proof: Proof | None = None


class StaffHello(Message, frozen=True, kw_only=True, tag="staffHello"):
    protocol: int
    staff_id: PeerId


# --- towards the edge: the plane ---------------------------------------------------------------------------


class DispatchRequest(Dispatch, frozen=True, kw_only=True, tag_field="type", tag="dispatch"):
    id: RequestId


class LookRequest(Look, frozen=True, kw_only=True, tag_field="type", tag="look"):
    id: RequestId


class GetReceipt(_DeviceRequest, frozen=True, kw_only=True, tag="getReceipt"):
    idempotency_key: IdempotencyKey
    epoch: Epoch | None = None
    """The ledger epoch under which the key was dispatched."""


class Cancel(_DeviceRequest, frozen=True, kw_only=True, tag="cancel"):
    idempotency_key: IdempotencyKey


class SetParked(_DeviceRequest, frozen=True, kw_only=True, tag="setParked"):
    parked: bool
    actor: Actor


class ListDevices(_Request, frozen=True, kw_only=True, tag="listDevices"):
    pass


class AckReceipt(Message, frozen=True, kw_only=True, tag="ackReceipt"):
    """The plane has the receipt durable. Not answered."""

    device_id: DeviceId
    idempotency_key: IdempotencyKey
    resolved: bool = False
    """What the plane has is the receipt with its resolution."""


# --- towards the edge: staff -------------------------------------------------------------------------------


class TakeHold(_DeviceRequest, frozen=True, kw_only=True, tag="takeHold"):
    hint: HoldHint
    """What is going on, in words to show a person."""


class ReleaseHold(_DeviceRequest, frozen=True, kw_only=True, tag="releaseHold"):
    force: bool = False
    """Also a hold that another session took (its process may be gone)."""


class DescribeRig(_DeviceRequest, frozen=True, kw_only=True, tag="describeRig"):
    pass


class StaffLook(_DeviceRequest, frozen=True, kw_only=True, tag="staffLook"):
    pass


class StaffTouch(_DeviceRequest, frozen=True, kw_only=True, tag="staffTouch"):
    touch: StaffTouchAt


class StaffPark(_DeviceRequest, frozen=True, kw_only=True, tag="staffPark"):
    pass


class Estop(_DeviceRequest, frozen=True, kw_only=True, tag="estop"):
    pass


class ClearEstop(_DeviceRequest, frozen=True, kw_only=True, tag="clearEstop"):
    pass


class AdoptCalibration(_DeviceRequest, frozen=True, kw_only=True, tag="adoptCalibration"):
    pass


class SetOrientation(_DeviceRequest, frozen=True, kw_only=True, tag="setOrientation"):
    orientation: WantedOrientation


class CheckDrift(_DeviceRequest, frozen=True, kw_only=True, tag="checkDrift"):
    pass


class ListReceipts(ReceiptQuery, frozen=True, kw_only=True, tag_field="type", tag="listReceipts"):
    id: RequestId


class ResolveReceipt(_DeviceRequest, frozen=True, kw_only=True, tag="resolveReceipt"):
    idempotency_key: IdempotencyKey
    outcome: ResolvedAs
    note: ReviewNote
    actor: Actor


# --- towards the edge: staff, and a plane that the operator allowed to act for them -------------------------


class Calibrate(_DeviceRequest, frozen=True, kw_only=True, tag="calibrate"):
    kind: CalibrationKind
    actor: Actor


class StopCalibration(_DeviceRequest, frozen=True, kw_only=True, tag="stopCalibration"):
    actor: Actor


# --- from the edge -----------------------------------------------------------------------------------------


class Challenge(Message, frozen=True, kw_only=True, omit_defaults=False, tag="challenge"):
    """The first message on every connection."""

    protocol: int
    oldest_protocol: int
    edge_id: str
    role: str
    """`plane` or `staff`: what this listener is for."""
    authentication: str
    """`none` or `hmac-sha256`."""
    nonce: Nonce


class SessionRules(Data, frozen=True, omit_defaults=False):
    """The limits of this session."""

    max_requests: int
    max_looks: int
    outbox_window: int
    ping_ms: int
    silence_ms: int
    max_bytes_to_edge: int
    max_bytes_from_edge: int


class Welcome(Message, frozen=True, kw_only=True, tag="welcome"):
    protocol: int
    edge_id: str
    boot_id: str
    """The edge machine's boot; its monotonic times belong to it."""
    epoch: int
    ledger_id: str
    rules: SessionRules
    devices: tuple[DeviceDescription, ...]
    proof: Proof | None = None
    epoch_raised: str | None = None
    """Why this start of the edge raised the epoch; None: it did not."""


class ProgressNote(_Answer, frozen=True, kw_only=True, tag="progress"):
    progress: Progress


class Result(_Answer, frozen=True, kw_only=True, tag="result"):
    outcome: Outcome


class PictureAnswer(_Answer, frozen=True, kw_only=True, tag="picture"):
    picture: Picture


class ReceiptFound(_Answer, frozen=True, kw_only=True, tag="receiptAnswer"):
    answer: ReceiptAnswer


class Receipts(_Answer, frozen=True, kw_only=True, tag="receipts"):
    page: ReceiptPage


class ReceiptPush(Message, frozen=True, kw_only=True, tag="receipt"):
    receipt: Receipt


class Devices(_Answer, frozen=True, kw_only=True, tag="devices"):
    devices: tuple[DeviceDescription, ...]


class DeviceChanged(Message, frozen=True, kw_only=True, tag="deviceChanged"):
    device: DeviceDescription


class Ok(_Answer, frozen=True, kw_only=True, tag="ok"):
    pass


class ErrorAnswer(Message, frozen=True, kw_only=True, tag="error"):
    error: ErrorInfo
    reply_to: RequestId | None = None
    """None: the error answers no request, or one whose id could not be read."""


class Rig(_Answer, frozen=True, kw_only=True, tag="rig"):
    rig: RigFacts


class RawPictureAnswer(_Answer, frozen=True, kw_only=True, tag="rawPicture"):
    picture: RawPicture


class DriftAnswer(_Answer, frozen=True, kw_only=True, tag="drift"):
    drift: DriftFound


class CalibrationProgress(_Answer, frozen=True, kw_only=True, tag="calibrationProgress"):
    stage: CalibrationStage


class CalibrationResult(_Answer, frozen=True, kw_only=True, tag="calibrationResult"):
    outcome: CalibrationOutcome


StaffAction = Calibrate | StopCalibration
"""What a plane may ask for only where the operator allowed it."""
PlaneRequest = DispatchRequest | LookRequest | Cancel | SetParked | GetReceipt | ListDevices | StaffAction
StaffRequest = (
    TakeHold
    | ReleaseHold
    | DescribeRig
    | StaffLook
    | StaffTouch
    | StaffPark
    | Estop
    | ClearEstop
    | AdoptCalibration
    | SetOrientation
    | CheckDrift
    | ListReceipts
    | ResolveReceipt
    | StaffAction
    | GetReceipt
    | ListDevices
)
Request = PlaneRequest | StaffRequest
ToEdge = Hello | StaffHello | AckReceipt | Ping | Pong | Request
Answer = (
    Result
    | PictureAnswer
    | ReceiptFound
    | Devices
    | Ok
    | ErrorAnswer
    | Rig
    | RawPictureAnswer
    | DriftAnswer
    | CalibrationResult
    | Receipts
)
Note = ProgressNote | CalibrationProgress
"""Said while a request is at work, before its answer."""
FromEdge = Challenge | Welcome | Note | ReceiptPush | DeviceChanged | Ping | Pong | Answer

PLANE_REQUESTS: tuple[type, ...] = get_args(PlaneRequest)
STAFF_REQUESTS: tuple[type, ...] = get_args(StaffRequest)
STAFF_ACTIONS: tuple[type, ...] = get_args(StaffAction)
SINCE_2: tuple[type, ...] = (CheckDrift, SetOrientation, *STAFF_ACTIONS)
"""Requests that protocol 1 does not have."""
SINCE_3: tuple[type, ...] = (ListReceipts, ResolveReceipt)
