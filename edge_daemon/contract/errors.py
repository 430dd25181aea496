"""What can be refused or fail, and how it is said to a person and to a program."""

from typing import Literal, get_args

from edge_daemon.contract.base import Data

ErrorCode = Literal[
    "invalid_argument",
    "unknown_device",
    "capability_unsupported",
    "stale_frame",
    "lease_required",
    "lease_mismatch",
    "leased",
    "permission_denied",
    "needs_user_control",
    "idempotency_conflict",
    "device_offline",
    "uncalibrated",
    "estopped",
    "expired",
    "outcome_unknown",
    "interrupted_by_restart",
    # Ours, versioned with the protocol:
    "canceled",  # taken back by the plane before it started
    "not_executed",  # the board refused it or gave up before it touched anything
    "storage_unavailable",  # the ledger cannot promise: disk full, failing fsync
    "rate_limited",  # more waits in line than the device or the session takes
    "protocol_error",  # the bytes are no message of this protocol
]

ERROR_CODES: tuple[str, ...] = get_args(ErrorCode)

# Whether the same request, sent again later with nothing changed, can succeed. An instance may say otherwise.
_RETRYABLE: dict[str, bool] = {
    "invalid_argument": False,
    "unknown_device": False,
    "capability_unsupported": False,
    "stale_frame": False,
    "lease_required": False,
    "lease_mismatch": False,
    "leased": True,
    "permission_denied": False,
    "needs_user_control": True,
    "idempotency_conflict": False,
    "device_offline": True,
    "uncalibrated": False,
    "estopped": False,
    "expired": False,
    "outcome_unknown": False,
    "interrupted_by_restart": False,
    "canceled": False,
    "not_executed": False,
    "storage_unavailable": True,
    "rate_limited": True,
    "protocol_error": False,
}


class ErrorInfo(Data, frozen=True, kw_only=True):
    """An error as it travels and as it is stored in a receipt."""

    code: ErrorCode
    message: str
    """A sentence for a person: what was wrong, where, and what to do."""
    retryable: bool
    field: str | None = None
    """Path of the offending field, e.g. `action.x`."""
    hint: str | None = None
    """What is going on, in words to show to whoever waits (a hold's reason)."""


class Refused(Exception):
    """The one exception with which a room of this daemon refuses a request. Nothing was executed."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        field: str | None = None,
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.info = error_info(code, message, field=field, hint=hint, retryable=retryable)

    @property
    def code(self) -> ErrorCode:
        return self.info.code


def error_info(
    code: ErrorCode,
    message: str,
    *,
    field: str | None = None,
    hint: str | None = None,
    retryable: bool | None = None,
) -> ErrorInfo:
    """An `ErrorInfo` with the code's usual `retryable` unless the caller knows better."""
    return ErrorInfo(
        code=code,
        message=message,
        retryable=_RETRYABLE[code] if retryable is None else retryable,
        field=field,
        hint=hint,
    )
