"""The session with the plane and with staff: messages, transports, outbox. The protocol is in PROTOCOL.md."""

from edge_daemon.upstream.client import EdgeGone, StaffClient, connect_staff
from edge_daemon.upstream.limits import SessionLimits
from edge_daemon.upstream.listeners import EndpointRefused, Endpoints, TcpEndpoint
from edge_daemon.upstream.server import EdgeIdentity, Listening, serve
from edge_daemon.upstream.service import (
    Change,
    HandEnvelope,
    HandPoint,
    ProgressCallback,
    RawPicture,
    RigFacts,
    ScreenSize,
    Service,
    StaffTouchAt,
)

__all__ = [
    "Change",
    "EdgeGone",
    "EdgeIdentity",
    "EndpointRefused",
    "Endpoints",
    "HandEnvelope",
    "HandPoint",
    "Listening",
    "ProgressCallback",
    "RawPicture",
    "RigFacts",
    "ScreenSize",
    "Service",
    "SessionLimits",
    "StaffClient",
    "StaffTouchAt",
    "TcpEndpoint",
    "connect_staff",
    "serve",
]
