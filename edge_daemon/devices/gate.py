"""Who may act, decided at the moment of dispatch to the board (and, to fail early, when a request arrives)."""

from edge_daemon.contract import Lease, Refused
from edge_daemon.ledger import Ledger


class Gate:
    """The checks of one device that do not depend on its parts. Every refusal means: nothing was executed."""

    def __init__(self, device_id: str, ledger: Ledger) -> None:
        self._device_id = device_id
        self._ledger = ledger

    def refuse_act(self, lease: Lease, *, lease_ends_ns: int, now_ns: int) -> None:
        """Raises `Refused` unless the holder of `lease` may act on the device now."""
        self.refuse_parked()
        self.refuse_held()
        self.refuse_stale_holder(lease)
        self.refuse_damaged()
        if now_ns >= lease_ends_ns:
            raise Refused(
                "lease_required",
                f"the lease {lease.lease_id!r} ran out before the action could begin: renew it and send again",
                field="lease.remainingMs",
            )

    def refuse_look(self, lease: Lease | None) -> None:
        """Raises `Refused` unless a picture of the screen may be given to whoever asks; lease: None for a watch."""
        self.refuse_parked()
        if lease is not None:
            self.refuse_stale_holder(lease)

    def refuse_parked(self) -> None:
        if self._ledger.parked(self._device_id):
            raise Refused(
                "needs_user_control",
                f"a person has the screen of {self._device_id}: nothing is done or shown until a person resumes",
            )

    def refuse_held(self) -> None:
        hold = self._ledger.hold(self._device_id)
        if hold is not None:
            raise Refused("leased", f"staff have {self._device_id}: {hold.hint}", hint=hold.hint)

    def refuse_damaged(self) -> None:
        fault = self._ledger.damage(self._device_id)
        if fault is not None:
            raise Refused(
                "storage_unavailable",
                f"nothing was executed: a receipt of {self._device_id} is damaged, or may be, and what was done before "
                f"must not be done again. {fault}",
                retryable=False,
            )

    def refuse_stale_holder(self, lease: Lease) -> None:
        highest = self._ledger.highest_token(self._device_id)
        if lease.fencing_token < highest:
            raise Refused(
                "lease_mismatch",
                f"fencing token {lease.fencing_token} is older than {highest}, the newest holder of "
                f"{self._device_id}: acquire the device again",
                field="lease.fencingToken",
            )
