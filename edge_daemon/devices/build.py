"""Puts a device together from its section of the configuration and the parts of the rig."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from edge_daemon.boards import Board, HandClient, HidClient
from edge_daemon.cameras.camera import Camera
from edge_daemon.clock import MonotonicNs, PlaneClock
from edge_daemon.config import Config, DeviceSection
from edge_daemon.contract import Receipt
from edge_daemon.devices.command_ids import CommandIds
from edge_daemon.devices.device import Device
from edge_daemon.devices.eye import Eye
from edge_daemon.devices.fleet import Changes, Fleet
from edge_daemon.devices.gate import Gate
from edge_daemon.devices.keeper import HandKeeper
from edge_daemon.devices.parts import Parts
from edge_daemon.devices.performers import HandTouch, HidTouch, Keyboard
from edge_daemon.devices.receipts import ReceiptWriter
from edge_daemon.devices.recovery import Recovery
from edge_daemon.devices.slot import CalibrationSlot
from edge_daemon.devices.staff import StaffDesk
from edge_daemon.ledger import Ledger, PendingEntry


@dataclass(frozen=True)
class House:
    """What all devices of a rig share."""

    config: Config
    ledger: Ledger
    clock: PlaneClock
    boot_id: str
    monotonic_ns: MonotonicNs
    boards: Mapping[str, Board]
    cameras: Mapping[str, Camera]


def build_fleet(house: House, pending: Sequence[PendingEntry]) -> Fleet:
    """All devices of the configuration; `pending`: what the ledger found unfinished, oldest first."""
    changes = Changes()
    ids = CommandIds(house.monotonic_ns)
    devices: dict[str, Device] = {}
    desks: dict[str, StaffDesk] = {}
    for device_id, section in house.config.devices.items():

        def on_change(device_id: str = device_id) -> None:
            changes.tell(desks[device_id].describe())

        slot = CalibrationSlot(device_id)
        parts = _parts(house, device_id, section, slot, on_change)
        desk = StaffDesk(
            device_id,
            section,
            parts,
            house.ledger,
            house.config.calibration_path(device_id),
            ids,
            house.monotonic_ns,
        )
        if parts.keeper is not None:
            parts.keeper.on_announced = desk.load_calibration
        own = [entry for entry in pending if entry.receipt.device_id == device_id]
        desks[device_id] = desk
        devices[device_id] = _device(house, device_id, section, parts, own, ids, changes.tell)
    return Fleet(devices, desks, house.ledger, changes)


def _parts(
    house: House,
    device_id: str,
    section: DeviceSection,
    slot: CalibrationSlot,
    on_change: Callable[[], None],
) -> Parts:
    hid_board = house.boards[section.hid] if section.hid is not None else None
    keyboard = Keyboard(hid_board, HidClient(hid_board)) if hid_board is not None else None
    keeper: HandKeeper | None = None
    touch: HandTouch | HidTouch
    if section.hand is not None:
        board = house.boards[section.hand]
        hand = HandClient(board)
        touch = HandTouch(board, hand, section.motion, slot)
        keeper = HandKeeper(board, hand, section.motion, house.monotonic_ns)
    else:
        assert hid_board is not None, "the configuration was checked"
        touch = HidTouch(hid_board, HidClient(hid_board))
    return Parts(
        device_id,
        touch=touch,
        keyboard=keyboard,
        keeper=keeper,
        camera=house.cameras[section.camera],
        slot=slot,
        on_change=on_change,
    )


def _device(
    house: House,
    device_id: str,
    section: DeviceSection,
    parts: Parts,
    pending: Sequence[PendingEntry],
    ids: CommandIds,
    on_receipt: Callable[[Receipt], None],
) -> Device:
    writer = ReceiptWriter(
        "robot_hand" if parts.keeper is not None else "esp32_hid", house.boot_id, house.clock, house.ledger
    )
    eye = Eye(
        device_id,
        parts.camera,
        parts.slot,
        parts.keeper,
        section.orientation,
        house.clock,
        house.monotonic_ns,
    )
    return Device(
        device_id,
        parts,
        eye,
        Gate(device_id, house.ledger),
        house.ledger,
        writer,
        Recovery(pending, parts.boards, house.ledger, writer, house.monotonic_ns, on_receipt),
        ids,
        house.monotonic_ns,
        queue_limit=section.queue_limit,
        on_receipt=on_receipt,
    )
