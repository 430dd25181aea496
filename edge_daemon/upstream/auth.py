"""The shared-secret handshake of the TCP listener: both ends prove the secret, neither sends it.

    plane proof = HMAC-SHA256(secret, "edge-daemon/1 plane" 00 edge_nonce plane_nonce plane_id)
    edge proof  = HMAC-SHA256(secret, "edge-daemon/1 edge"  00 plane_nonce edge_nonce edge_id)

Both nonces are 32 bytes, ids are UTF-8. The labels differ, so that neither proof can be reflected as the
other; both nonces go in, so that neither can be replayed. It authenticates the start of the connection only:
beyond loopback the connection belongs into a tunnel.
"""

import hashlib
import hmac
import stat
from pathlib import Path
from typing import Final

MIN_SECRET_BYTES: Final = 32
MAX_SECRET_BYTES: Final = 1024


class SecretRefused(Exception):
    """The token file cannot serve; the message says why and what to do."""


def load_secret(path: Path) -> bytes:
    """The token file's bytes without trailing white space.

    Raises: SecretRefused.
    """
    try:
        mode = path.stat().st_mode
        secret = path.read_bytes().rstrip()
    except OSError as e:
        raise SecretRefused(f"token file {path}: {e.strerror}; make one with 'openssl rand -hex 32'") from e
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SecretRefused(
            f"token file {path} is open to others (mode {stat.S_IMODE(mode):04o}); chmod 600 it"
        )
    if not MIN_SECRET_BYTES <= len(secret) <= MAX_SECRET_BYTES:
        raise SecretRefused(
            f"token file {path} holds {len(secret)} bytes, {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} are "
            "needed; make one with 'openssl rand -hex 32'"
        )
    return secret


def plane_proof(secret: bytes, edge_nonce: bytes, plane_nonce: bytes, plane_id: str) -> bytes:
    return _proof(secret, b"edge-daemon/1 plane\0" + edge_nonce + plane_nonce + plane_id.encode())


def edge_proof(secret: bytes, edge_nonce: bytes, plane_nonce: bytes, edge_id: str) -> bytes:
    return _proof(secret, b"edge-daemon/1 edge\0" + plane_nonce + edge_nonce + edge_id.encode())


def same(a: bytes, b: bytes) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(a, b)


def _proof(secret: bytes, message: bytes) -> bytes:
    return hmac.new(secret, message, hashlib.sha256).digest()
