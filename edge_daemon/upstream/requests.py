"""One request, one call of the service, one answer."""

from typing import Final

from edge_daemon.contract import Actor, Outcome, Progress, Refused
from edge_daemon.upstream.connection import Connection
from edge_daemon.upstream.messages import (
    AdoptCalibration,
    Answer,
    Calibrate,
    CalibrationProgress,
    CalibrationResult,
    Cancel,
    CheckDrift,
    ClearEstop,
    DescribeRig,
    Devices,
    DispatchRequest,
    DriftAnswer,
    ErrorAnswer,
    Estop,
    GetReceipt,
    ListDevices,
    ListReceipts,
    LookRequest,
    Ok,
    PictureAnswer,
    ProgressNote,
    RawPictureAnswer,
    ReceiptFound,
    Receipts,
    ReleaseHold,
    Request,
    ResolveReceipt,
    Result,
    Rig,
    SetOrientation,
    SetParked,
    StaffLook,
    StaffPark,
    StaffTouch,
    StopCalibration,
    TakeHold,
)
from edge_daemon.upstream.service import CalibrationStage, Service

READS: Final = (LookRequest, GetReceipt, ListReceipts, ListDevices, DescribeRig, StaffLook, CheckDrift)
"""They change nothing and end with their connection; everything else goes on without it."""


async def fulfil(service: Service, connection: Connection, request: Request) -> None:
    """Ask the service and answer with what it says, a refusal included."""
    try:
        answer = await _ask(service, connection, request)
    except Refused as e:
        answer = _refused(request, e)
    connection.answer(answer)


def _refused(request: Request, e: Refused) -> Answer:
    if isinstance(request, DispatchRequest | Cancel):
        return Result(reply_to=request.id, outcome=Outcome(error=e.info))
    return ErrorAnswer(reply_to=request.id, error=e.info)


async def _ask(service: Service, connection: Connection, request: Request) -> Answer:
    match request:
        case DispatchRequest():
            return await _dispatch(service, connection, request)
        case LookRequest():
            return PictureAnswer(reply_to=request.id, picture=await service.look(request))
        case GetReceipt(device_id=device_id, idempotency_key=key, epoch=epoch):
            answer = await service.get_receipt(device_id, key, epoch)
            return ReceiptFound(reply_to=request.id, answer=answer)
        case ListDevices():
            return Devices(reply_to=request.id, devices=tuple(service.devices()))
        case Cancel(device_id=device_id, idempotency_key=key):
            return Result(reply_to=request.id, outcome=await service.cancel(device_id, key))
        case DescribeRig(device_id=device_id):
            return Rig(reply_to=request.id, rig=await service.rig_facts(device_id))
        case StaffLook(device_id=device_id):
            return RawPictureAnswer(reply_to=request.id, picture=await service.staff_look(device_id))
        case CheckDrift(device_id=device_id):
            return DriftAnswer(reply_to=request.id, drift=await service.check_drift(device_id))
        case ListReceipts():
            return Receipts(reply_to=request.id, page=await service.list_receipts(request))
        case ResolveReceipt(device_id=device_id, idempotency_key=key, outcome=outcome, note=note):
            _require_staff(request.actor, "resolve receipts")
            found = await service.resolve_receipt(device_id, key, outcome, note, request.actor)
            return ReceiptFound(reply_to=request.id, answer=found)
        case Calibrate():
            return await _calibrate(service, connection, request)
        case _:
            await _do(service, connection, request)
            return Ok(reply_to=request.id)


async def _dispatch(service: Service, connection: Connection, request: DispatchRequest) -> Answer:
    def tell(progress: Progress) -> None:
        connection.session.note(ProgressNote(reply_to=request.id, progress=progress))
        connection.pump()

    return Result(reply_to=request.id, outcome=await service.dispatch(request, tell))


async def _calibrate(service: Service, connection: Connection, request: Calibrate) -> Answer:
    def tell(stage: CalibrationStage) -> None:
        connection.session.note(CalibrationProgress(reply_to=request.id, stage=stage))
        connection.pump()

    _require_staff(request.actor, "calibrate")
    outcome = await service.calibrate(request.device_id, request.kind, request.actor, tell)
    return CalibrationResult(reply_to=request.id, outcome=outcome)


def _require_staff(actor: Actor, what: str) -> None:
    if actor.kind != "staff":
        raise Refused(
            "permission_denied",
            f"actor.kind: only staff {what}; the actor is {actor.kind!r}",
            field="actor.kind",
        )


async def _do(service: Service, connection: Connection, request: Request) -> None:
    """The requests that are answered with a bare `ok`."""
    match request:
        case SetParked(device_id=device_id, parked=parked, actor=actor):
            if not parked and actor.kind != "person":
                raise Refused(
                    "permission_denied",
                    f"actor.kind: {actor.kind} may not lift a parking, only a person may",
                    field="actor.kind",
                )
            await service.set_parked(device_id, parked, actor)
        case TakeHold(device_id=device_id, hint=hint):
            await _take_hold(service, connection, device_id, hint)
        case ReleaseHold(device_id=device_id, force=force):
            await service.release_hold(device_id, None if force else connection.owner)
            connection.holds.discard(device_id)
        case StaffTouch(device_id=device_id, touch=touch):
            await service.staff_touch(device_id, touch, connection.owner)
        case StaffPark(device_id=device_id):
            await service.staff_park(device_id, connection.owner)
        case Estop(device_id=device_id):
            await service.estop(device_id)
        case ClearEstop(device_id=device_id):
            await service.clear_estop(device_id)
        case AdoptCalibration(device_id=device_id):
            await service.adopt_calibration(device_id)
        case SetOrientation(device_id=device_id, orientation=orientation):
            await service.set_orientation(device_id, orientation)
        case StopCalibration(device_id=device_id, actor=actor):
            _require_staff(actor, "calibrate")
            await service.stop_calibration(device_id, actor)
        case _:
            raise AssertionError(f"{request!r} is not answered with ok")


async def _take_hold(service: Service, connection: Connection, device_id: str, hint: str) -> None:
    # Noted before it is asked for: a hold whose taking was cut short must be given back as well.
    has_it = device_id in connection.holds
    connection.holds.add(device_id)
    try:
        await service.take_hold(device_id, hint, connection.owner)
    except Refused:
        # Taking it again may be refused by the disk: what was taken before is held all the same.
        if not has_it:
            connection.holds.discard(device_id)
        raise
    # Another request of this connection may have been refused meanwhile.
    connection.holds.add(device_id)
