"""Whether a phone can use the reports that a well-formed descriptor describes, and which of them it uses."""

from collections.abc import Iterable, Mapping

from edge_daemon.bench.twin import hid_descriptor
from edge_daemon.bench.twin.hid_descriptor import DescriptorError, Field, Report

TIP_SWITCH, IN_RANGE, CONTACT_ID = 0x000D_0042, 0x000D_0032, 0x000D_0051
CONTACT_COUNT, CONTACT_COUNT_MAX = 0x000D_0054, 0x000D_0055
AXIS_X, AXIS_Y, BUTTON_1 = 0x0001_0030, 0x0001_0031, 0x0009_0001

_TOUCH_USAGES = (TIP_SWITCH, CONTACT_ID, AXIS_X, AXIS_Y, CONTACT_COUNT)
_KNOWN_APPLICATIONS = {
    hid_descriptor.APP_KEYBOARD,
    hid_descriptor.APP_CONSUMER,
    hid_descriptor.APP_SYSTEM,
    hid_descriptor.APP_TOUCH_SCREEN,
    hid_descriptor.APP_MOUSE,
}


def usable_inputs(reports: Iterable[Report]) -> Mapping[int, Report]:
    """The input reports by id. Raises DescriptorError where the phone could make nothing of one.

    A mouse beside a touch screen is left out: Linux's hid-multitouch takes the whole interface for the touch
    screen's sake and maps no mouse in it. Where Linux guesses what a touch screen left out – the contact count, its
    maximum – this phone refuses instead.
    """
    reports = tuple(reports)
    inputs = {report.ident: report for report in reports if report.kind == "input"}
    if not inputs:
        raise DescriptorError("the device has no input report")
    applications = {field.application for report in inputs.values() for field in report.fields}
    if not applications & _KNOWN_APPLICATIONS:
        raise DescriptorError("none of its applications is one that a phone has a use for")
    for report in inputs.values():
        _check(report, [other for other in reports if other.kind == "feature"])
    if hid_descriptor.APP_TOUCH_SCREEN in applications:
        return {ident: report for ident, report in inputs.items() if application_of(report) != _MOUSE}
    return inputs


_MOUSE = hid_descriptor.APP_MOUSE


def application_of(report: Report) -> int:
    """What the report is for: the usage of its application collection."""
    return report.fields[0].application


def _check(report: Report, features: list[Report]) -> None:
    if len({field.application for field in report.fields}) > 1:
        raise DescriptorError(f"report {report.ident} belongs to two applications: each needs its own id")
    application = application_of(report)
    if application == hid_descriptor.APP_KEYBOARD:
        _check_keyboard(report)
    elif application == hid_descriptor.APP_TOUCH_SCREEN:
        _check_touch_screen(report, features)
    elif application == hid_descriptor.APP_MOUSE:
        _check_mouse(report)


def _check_keyboard(report: Report) -> None:
    keys = [field for field in report.fields if not field.constant and not field.variable]
    modifiers = {0x0007_00E0 + bit for bit in range(8)}
    if not keys or not modifiers <= _usages(report):
        raise DescriptorError("a keyboard without an array of keys or without its eight modifiers")


def _check_touch_screen(report: Report, features: list[Report]) -> None:
    _require(report, _TOUCH_USAGES, "a touch screen")
    for field in _axes(report):
        if field.relative or field.logical_max <= field.logical_min:
            raise DescriptorError("a touch screen whose axes are relative or have no range")
    maxima = [field for feature in features for field in feature.fields if CONTACT_COUNT_MAX in field.usages]
    if not maxima or maxima[0].logical_max < 1:
        raise DescriptorError("a touch screen that does not say how many contacts it has at most")


def _check_mouse(report: Report) -> None:
    _require(report, (AXIS_X, AXIS_Y, BUTTON_1), "a mouse")
    for field in _axes(report):
        if not field.relative or not field.logical_min < 0 < field.logical_max:
            raise DescriptorError("a mouse whose axes are absolute or go one way only: no cursor follows it")


def _require(report: Report, wanted: tuple[int, ...], what: str) -> None:
    missing = set(wanted) - _usages(report)
    if missing:
        names = ", ".join(f"0x{usage:08x}" for usage in sorted(missing))
        raise DescriptorError(f"{what} without {names}: the phone does not take it")


def _axes(report: Report) -> list[Field]:
    return [field for field in report.fields if {AXIS_X, AXIS_Y} & set(field.usages)]


def _usages(report: Report) -> set[int]:
    return {usage for field in report.fields if not field.constant for usage in field.usages}
