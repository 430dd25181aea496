"""One TOML file, typed. A wrong key or value is refused with the file, the key and what is allowed.

Every key is explained in `systemd/edge-daemon.example.toml`.
"""

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta

from edge_daemon.cameras.sources import CameraSource
from edge_daemon.contract.identity import Orientation

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z")]
PositiveMm = Annotated[float, Meta(gt=0, le=1000)]
T = TypeVar("T", bound=msgspec.Struct)


class ConfigError(Exception):
    """The configuration cannot be used. The message names the file, the key and what is allowed."""


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class EdgeSection(Section, frozen=True, kw_only=True):
    id: Name
    state_dir: str


class TcpSection(Section, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)]
    token_file: str
    allow_beyond_loopback: bool = False


class PlaneSection(Section, frozen=True, kw_only=True):
    unix_socket: str | None = None
    tcp: TcpSection | None = None
    staff_actions: bool = False


class StaffSection(Section, frozen=True, kw_only=True):
    unix_socket: str


class BoardSection(Section, frozen=True, kw_only=True):
    kind: Literal["hand", "hid"]
    port: str
    uid: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}\Z")] | None = None


class ScreenSection(Section, frozen=True, kw_only=True):
    width_px: Annotated[int, Meta(ge=100, le=10_000)]
    height_px: Annotated[int, Meta(ge=100, le=10_000)]
    width_mm: PositiveMm
    height_mm: PositiveMm


class MotionSection(Section, frozen=True, kw_only=True):
    park_x_mm: float = 0.0
    park_y_mm: float = 0.0
    park_z_mm: float = 30.0
    search_z_mm: float = 10.0
    hover_mm: Annotated[float, Meta(ge=1, le=50)] = 4.0
    dwell_ms: Annotated[int, Meta(ge=10, le=1000)] = 60
    approach_mm: Annotated[float, Meta(ge=0, le=5)] = 0.6


class DriftSection(Section, frozen=True, kw_only=True):
    every_s: Annotated[float, Meta(ge=1, le=86_400)] = 600.0


class PageSection(Section, frozen=True, kw_only=True):
    host: Annotated[str, Meta(min_length=1, max_length=255)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)]
    url_host: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    allow_beyond_loopback: bool = False


class DeviceSection(Section, frozen=True, kw_only=True):
    camera: Name
    screen: ScreenSection
    hand: Name | None = None
    hid: Name | None = None
    display_name: str | None = None
    orientation: Orientation = "portrait"
    motion: MotionSection = MotionSection()
    drift: DriftSection = DriftSection()
    page: PageSection | None = None
    queue_limit: Annotated[int, Meta(ge=1, le=1000)] = 16


class LedgerSection(Section, frozen=True, kw_only=True):
    keep_days: Annotated[float, Meta(ge=1, le=3_650)] = 14.0
    keep_newest: Annotated[int, Meta(ge=100, le=10_000_000)] = 10_000


class LogSection(Section, frozen=True, kw_only=True):
    level: Literal["debug", "info", "warning", "error"] = "info"


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file; every reference between tables has been checked."""

    path: Path
    edge: EdgeSection
    plane: PlaneSection
    staff: StaffSection
    log: LogSection
    ledger: LedgerSection
    boards: Mapping[str, BoardSection]
    cameras: Mapping[str, CameraSource]
    devices: Mapping[str, DeviceSection]

    @property
    def state_dir(self) -> Path:
        return Path(self.edge.state_dir)

    @property
    def ledger_path(self) -> Path:
        return self.state_dir / "ledger.sqlite3"

    @property
    def calibration_root(self) -> Path:
        """Where the calibrations of all devices are kept, a folder each."""
        return self.state_dir / "calibration"


_SINGLE: dict[str, type[Section]] = {
    "edge": EdgeSection,
    "plane": PlaneSection,
    "staff": StaffSection,
    "log": LogSection,
    "ledger": LedgerSection,
}
_NAMED = ("boards", "cameras", "devices")


def load_config(path: Path) -> Config:
    """Reads, types and cross-checks the file. Raises `ConfigError`."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from error
    config = _typed(path, raw)
    for problem in _cross_check(config):
        raise ConfigError(f"{path}: {problem}")
    return config


def _typed(path: Path, raw: dict[str, Any]) -> Config:
    _refuse_unknown(path, "", raw, (*_SINGLE, *_NAMED))
    for required in ("edge", "plane", "staff", "devices"):
        if required not in raw:
            raise ConfigError(f"{path}: the table [{required}] is missing")
    for table in raw:
        if not isinstance(raw[table], dict):
            raise ConfigError(f"{path}: `{table}` must be a table ([{table}]), not a value")
    return Config(
        path=path,
        edge=_section(path, "edge", raw["edge"], EdgeSection),
        plane=_section(path, "plane", raw["plane"], PlaneSection),
        staff=_section(path, "staff", raw["staff"], StaffSection),
        log=_section(path, "log", raw.get("log", {}), LogSection),
        ledger=_section(path, "ledger", raw.get("ledger", {}), LedgerSection),
        boards=_named(path, "boards", raw, BoardSection),
        cameras={name: _camera(path, name, value) for name, value in _tables(path, "cameras", raw)},
        devices=_named(path, "devices", raw, DeviceSection),
    )


def _named(path: Path, table: str, raw: dict[str, Any], kind: type[T]) -> dict[str, T]:
    return {name: _section(path, f"{table}.{name}", value, kind) for name, value in _tables(path, table, raw)}


def _tables(path: Path, table: str, raw: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, value in raw.get(table, {}).items():
        if not isinstance(value, dict):
            raise ConfigError(f"{path}: `{table}.{name}` must be a table ([{table}.{name}]), not a value")
        try:
            msgspec.convert(name, Name)
        except msgspec.ValidationError as error:
            raise ConfigError(
                f"{path}: [{table}.{name}]: a name is 1–128 letters, digits, `-` or `_`, "
                "and begins with a letter or digit"
            ) from error
        yield name, value


def _section(path: Path, key: str, value: dict[str, Any], kind: type[T]) -> T:
    _refuse_unknown_in(path, key, value, kind)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {_located(key, error)}") from error


def _camera(path: Path, name: str, value: dict[str, Any]) -> CameraSource:
    key = f"cameras.{name}"
    kinds: dict[str, type[msgspec.Struct]] = {
        str(kind.__struct_config__.tag): kind for kind in get_args(CameraSource) or (CameraSource,)
    }
    kind = kinds.get(str(value.get("type")))
    if kind is None:
        raise ConfigError(f"{path}: [{key}] `type` must be one of: {', '.join(sorted(kinds))}")
    fields = {k: v for k, v in value.items() if k != "type"}
    _refuse_unknown_in(path, key, fields, kind)
    try:
        source: CameraSource = msgspec.convert(value, CameraSource)
        return source
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {_located(key, error)}") from error


def _refuse_unknown_in(path: Path, key: str, value: Mapping[str, Any], kind: type[msgspec.Struct]) -> None:
    fields = msgspec.structs.fields(kind)
    _refuse_unknown(path, key, value, tuple(field.encode_name for field in fields))
    for field in fields:
        inner = value.get(field.encode_name)
        for candidate in (field.type, *get_args(field.type)):
            is_struct = isinstance(candidate, type) and issubclass(candidate, msgspec.Struct)
            if is_struct and isinstance(inner, dict):
                _refuse_unknown_in(path, f"{key}.{field.encode_name}", inner, candidate)


def _refuse_unknown(path: Path, key: str, value: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for name in value:
        if name not in allowed:
            where = f"[{key}] unknown key `{name}`" if key else f"unknown table [{name}]"
            near = difflib.get_close_matches(name, allowed, n=1)
            meant = f" (did you mean `{near[0]}`?)" if near else ""
            raise ConfigError(f"{path}: {where}{meant}; allowed: {', '.join(allowed)}")


def _located(key: str, error: msgspec.ValidationError) -> str:
    text = str(error)
    what, _, where = text.partition(" - at `$")
    full = key + where.rstrip("`") if where else key
    return f"[{full}] {what}"


def _cross_check(config: Config) -> Iterator[str]:
    if config.plane.unix_socket is None and config.plane.tcp is None:
        yield "[plane] needs `unix_socket` or [plane.tcp]: nobody could dispatch anything"
    if not config.devices:
        yield "[devices] is empty: name at least one, e.g. [devices.phone-1]"
    taken: dict[str, str] = {}
    for device_id, device in config.devices.items():
        if device.hand is None and device.hid is None:
            yield f"[devices.{device_id}] needs `hand` or `hid`: it could not do anything"
        for kind, name in (("hand", device.hand), ("hid", device.hid)):
            if name is None:
                continue
            board = config.boards.get(name)
            if board is None:
                yield f"[devices.{device_id}] {kind} = {name!r}: there is no table [boards.{name}]"
            elif board.kind != kind:
                yield f"[devices.{device_id}] {kind} = {name!r}: that board's kind is {board.kind!r}"
            if name in taken:
                yield f"[devices.{device_id}] {kind} = {name!r}: already used by [devices.{taken[name]}]"
            taken[name] = device_id
        if device.camera not in config.cameras:
            yield f"[devices.{device_id}] camera = {device.camera!r}: there is no table [cameras.{device.camera}]"
    ports: dict[str, str] = {}
    for name, board in config.boards.items():
        if board.port in ports:
            yield f"[boards.{name}] port = {board.port!r}: already used by [boards.{ports[board.port]}]"
        ports[board.port] = name
