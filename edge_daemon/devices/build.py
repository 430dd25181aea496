"""Puts a device together from its section of the configuration and the parts of the rig."""

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import trio

from edge_daemon.boards import Board, HandClient, HidClient
from edge_daemon.cameras.camera import Camera, InThread
from edge_daemon.clock import MonotonicNs, PlaneClock
from edge_daemon.config import Config, DeviceSection
from edge_daemon.contract import Receipt
from edge_daemon.devices.command_ids import CommandIds
from edge_daemon.devices.device import Device
from edge_daemon.devices.drift import DriftWatch
from edge_daemon.devices.eye import Eye
from edge_daemon.devices.fleet import Changes, Fleet
from edge_daemon.devices.gate import Gate
from edge_daemon.devices.hand_touch import HandTouch
from edge_daemon.devices.hid_touch import HidTouch
from edge_daemon.devices.keeper import HandKeeper
from edge_daemon.devices.keyboard import Keyboard
from edge_daemon.devices.parts import Parts
from edge_daemon.devices.receipts import ReceiptWriter
from edge_daemon.devices.recovery import Recovery
from edge_daemon.devices.reviews import Reviews
from edge_daemon.devices.rigfacts import RigReader
from edge_daemon.devices.shelf import Shelf
from edge_daemon.devices.slot import CalibrationSlot
from edge_daemon.devices.staff import StaffDesk
from edge_daemon.ledger import Ledger, PendingEntry
from edge_daemon.staff.unattended import Unattended

logger = logging.getLogger(__name__)


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
    random_bits: Callable[[int], int] = secrets.randbits
    in_thread: InThread = trio.to_thread.run_sync
    """Runs what blocks for the disk."""


def build_fleet(house: House, pending: Sequence[PendingEntry], unattended: Unattended) -> Fleet:
    """All devices of the configuration; `pending`: what the ledger found unfinished, oldest first."""
    changes = Changes()
    ids = CommandIds(
        house.ledger.lived_ns,
        house.random_bits,
        told=lambda: max((highest_given(board) for board in house.boards.values()), default=0),
        above=max((entry.command.cmd_id for entry in pending), default=0),
    )
    devices: dict[str, Device] = {}
    desks: dict[str, StaffDesk] = {}
    for device_id, section in house.config.devices.items():

        def on_change(device_id: str = device_id) -> None:
            changes.tell(desks[device_id].describe())

        reader = _reader(house, device_id, section)
        parts = _parts(house, section, reader, on_change)
        drift = DriftWatch(
            device_id, parts, house.ledger, house.monotonic_ns, section.drift.every_s, on_change
        )
        own = [entry for entry in pending if entry.receipt.device_id == device_id]
        desks[device_id] = StaffDesk(
            device_id, section, parts, drift, house.ledger, reader, ids, house.monotonic_ns
        )
        devices[device_id] = _device(house, device_id, section, parts, drift, own, ids, changes.tell)

    def on_damage() -> None:
        for desk in desks.values():
            changes.tell(desk.describe())

    house.ledger.watch_damage(on_damage)
    removed = [
        _recovery_of_removed(house, device_id, pending, changes.tell)
        for device_id in _removed(house, pending)
    ]
    reviews = Reviews(house.ledger, house.boot_id, house.clock, house.monotonic_ns, changes.tell)
    return Fleet(devices, desks, house.ledger, changes, unattended, reviews, removed)


def _removed(house: House, pending: Sequence[PendingEntry]) -> list[str]:
    """Devices that the configuration has no more, with receipts that still wait for their end."""
    named = dict.fromkeys(entry.receipt.device_id for entry in pending)
    return [device_id for device_id in named if device_id not in house.config.devices]


def _recovery_of_removed(
    house: House, device_id: str, pending: Sequence[PendingEntry], on_receipt: Callable[[Receipt], None]
) -> Recovery:
    """Any board of the rig may be the one that had the command: the phone may stand there by another name now."""
    own = [entry for entry in pending if entry.receipt.device_id == device_id]
    writer = ReceiptWriter(own[0].receipt.backend_kind, house.boot_id, house.clock, house.ledger)
    boards = list(house.boards.values())
    logger.warning("%s is not configured any more; %d receipt(s) of it are settled", device_id, len(own))
    return Recovery(own, boards, house.ledger, writer, house.monotonic_ns, on_receipt)


def highest_given(board: Board) -> int:
    """The highest id, housekeeping apart, that the board was given before the session with it."""
    return board.last_info.highest_cmd_ids[0] if board.last_info is not None else 0


def _reader(house: House, device_id: str, section: DeviceSection) -> RigReader:
    return RigReader(
        device_id=device_id,
        section=section,
        hand=house.boards[section.hand] if section.hand is not None else None,
        hid=house.boards[section.hid] if section.hid is not None else None,
        camera=house.cameras[section.camera],
        source=house.config.cameras[section.camera],
        calibration_root=house.config.calibration_root,
        boot_id=house.boot_id,
        clock=house.clock,
        monotonic_ns=house.monotonic_ns,
        orientation=lambda: house.ledger.orientation(device_id) or section.orientation,
    )


def _parts(house: House, section: DeviceSection, reader: RigReader, on_change: Callable[[], None]) -> Parts:
    slot = CalibrationSlot(reader.device_id)
    keyboard = Keyboard(reader.hid, HidClient(reader.hid)) if reader.hid is not None else None
    keeper: HandKeeper | None = None
    touch: HandTouch | HidTouch
    if reader.hand is not None:
        hand = HandClient(reader.hand, house.ledger.lived_ns)
        touch = HandTouch(reader.hand, hand, section.motion, slot)
        keeper = HandKeeper(reader.hand, hand, section.motion, house.monotonic_ns)
    else:
        assert reader.hid is not None, "the configuration was checked"
        touch = HidTouch(reader.hid, HidClient(reader.hid), slot)
    return Parts(
        reader.device_id,
        touch=touch,
        keyboard=keyboard,
        keeper=keeper,
        camera=reader.camera,
        slot=slot,
        shelf=Shelf(slot, reader, house.in_thread),
        monotonic_ns=house.monotonic_ns,
        on_change=on_change,
    )


def _device(
    house: House,
    device_id: str,
    section: DeviceSection,
    parts: Parts,
    drift: DriftWatch,
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
        parts.history,
        lambda: house.ledger.orientation(device_id) or section.orientation,
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
        drift,
        ids,
        house.monotonic_ns,
        queue_limit=section.queue_limit,
        on_receipt=on_receipt,
    )
