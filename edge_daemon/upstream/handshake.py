"""Who may be on the other end of a connection: the checks between `challenge` and `welcome`."""

from dataclasses import dataclass
from typing import Final, Literal

from edge_daemon.contract import Refused
from edge_daemon.upstream import auth
from edge_daemon.upstream.codec import tag_of
from edge_daemon.upstream.messages import (
    OLDEST_PROTOCOL,
    PROTOCOL,
    Challenge,
    Hello,
    StaffHello,
    ToEdge,
)

Role = Literal["plane", "staff"]

_FIRST_MESSAGE: Final[dict[Role, type[Hello | StaffHello]]] = {"plane": Hello, "staff": StaffHello}


@dataclass(frozen=True, slots=True)
class Handshake:
    """One connection's. `role` is the listener's, never the peer's claim."""

    role: Role
    edge_id: str
    nonce: bytes
    secret: bytes | None

    def challenge(self) -> Challenge:
        return Challenge(
            protocol=PROTOCOL,
            oldest_protocol=OLDEST_PROTOCOL[self.role],
            edge_id=self.edge_id,
            role=self.role,
            authentication="none" if self.secret is None else "hmac-sha256",
            nonce=self.nonce,
        )

    def check(self, message: ToEdge) -> Hello | StaffHello:
        """The peer's first message, if it is the right one and proves what it must.

        Raises: Refused.
        """
        wanted = _FIRST_MESSAGE[self.role]
        if not isinstance(message, Hello | StaffHello):
            raise Refused(
                "protocol_error", f"say hello first: {tag_of(message)} came before it", field="type"
            )
        if not isinstance(message, wanted):
            raise Refused(
                "permission_denied",
                f"this is a {self.role} listener: begin with {wanted.__struct_config__.tag}, "
                f"not {tag_of(message)}",
                field="type",
            )
        oldest = OLDEST_PROTOCOL[self.role]
        if not oldest <= message.protocol <= PROTOCOL:
            raise Refused(
                "protocol_error",
                f"protocol {message.protocol} is not spoken here, {oldest} to {PROTOCOL} are",
                field="protocol",
            )
        if isinstance(message, Hello):
            self._check_proof(message)
        return message

    def _check_proof(self, hello: Hello) -> None:
        if self.secret is None:
            if hello.proof is not None:
                raise Refused("invalid_argument", "this listener asks for no proof", field="proof")
            return
        if hello.nonce is None or hello.proof is None:
            missing = "nonce" if hello.nonce is None else "proof"
            raise Refused("permission_denied", f"this listener needs a {missing} in hello", field=missing)
        expected = auth.plane_proof(self.secret, self.nonce, hello.nonce, hello.plane_id)
        if not auth.same(expected, hello.proof):
            raise Refused(
                "permission_denied",
                "the proof does not fit; compare the token files at both ends",
                field="proof",
            )

    def proof_for(self, hello: Hello | StaffHello) -> bytes | None:
        """What proves the edge to the plane; None where no proof is asked for."""
        if self.secret is None or not isinstance(hello, Hello) or hello.nonce is None:
            return None
        return auth.edge_proof(self.secret, self.nonce, hello.nonce, self.edge_id)
