"""Where planes and staff come in: unix sockets only their owner can open, and TCP with a shared secret."""

import errno
import fcntl
import ipaddress
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from edge_daemon.upstream.auth import SecretRefused, load_secret

_MAX_UNIX_PATH: Final = 107
"""sun_path less its NUL (unix(7))."""
_BACKLOG: Final = 16


class EndpointRefused(Exception):
    """This listener cannot be opened; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class TcpEndpoint:
    """A plane over TCP. Beyond loopback the bytes are readable to the network: only in a tunnel."""

    host: str
    port: int
    token_file: Path
    allow_beyond_loopback: bool = False

    def __post_init__(self) -> None:
        if not self.allow_beyond_loopback and not is_loopback(self.host):
            raise EndpointRefused(
                f"tcp listener on {self.host!r}: what is sent there can be read on the network; listen on "
                "127.0.0.1 behind a tunnel, or set allow_beyond_loopback = true"
            )
        if not 0 <= self.port <= 65535:
            raise EndpointRefused(f"tcp listener: port {self.port} is not within 0..65535")

    def secret(self) -> bytes:
        """Raises EndpointRefused."""
        try:
            return load_secret(self.token_file)
        except SecretRefused as e:
            raise EndpointRefused(str(e)) from e


@dataclass(frozen=True, slots=True)
class Endpoints:
    plane_socket: Path | None = None
    plane_tcp: TcpEndpoint | None = None
    staff_socket: Path | None = None


def is_loopback(host: str) -> bool:
    """Whether what is sent to `host`, a name or an address, stays on this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def open_tcp(endpoint: TcpEndpoint) -> list[trio.SocketListener]:
    """Raises: EndpointRefused."""
    try:
        return await trio.open_tcp_listeners(endpoint.port, host=endpoint.host)
    except OSError as e:
        raise EndpointRefused(f"tcp listener on {endpoint.host}:{endpoint.port}: {e}") from e


@contextmanager
def unix_listener(path: Path) -> Iterator[trio.SocketListener]:
    """Listen on `path` with mode 0600 from its first moment on; the file is removed at the end.

    The socket is bound inside a fresh 0700 directory and moved to its place when its mode is set, so there is
    no moment at which others could connect, and no process-wide umask is touched. A lock file beside it, held
    as long as we listen, makes sure that a socket file found here is stale before it is replaced.

    Raises: EndpointRefused (somebody listens there, it is no socket, the directory is missing, …).
    """
    try:
        with _held_lock(path.with_name(path.name + ".lock")):
            _refuse_unless_stale(path)
            sock = _bind_private(path)
            mine = os.lstat(path)
            try:
                yield trio.SocketListener(trio.socket.from_stdlib_socket(sock))
            finally:
                sock.close()
                _remove_if_same(path, mine)
    except OSError as e:
        raise EndpointRefused(f"unix listener on {path}: {e.strerror or e}") from e


@contextmanager
def _held_lock(path: Path) -> Iterator[None]:
    # Never unlinked: a lock file that is removed can be locked by two at once.
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EndpointRefused(
                f"unix listener: another daemon holds {path}; stop it, or configure another path"
            ) from None
        yield
    finally:
        os.close(fd)


def _refuse_unless_stale(path: Path) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise EndpointRefused(
            f"unix listener: {path} exists and is no socket; it is left alone, move it away"
        )
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return
        except OSError as e:
            raise EndpointRefused(
                f"unix listener: cannot tell whether somebody listens on {path} ({e.strerror or e}); "
                "remove it if nobody does"
            ) from e
    raise EndpointRefused(f"unix listener: somebody listens on {path} already; stop it first")


def _bind_private(path: Path) -> socket.socket:
    # mkdtemp makes its directory with mode 0700.
    with tempfile.TemporaryDirectory(prefix=".", dir=path.parent) as private:
        first = Path(private) / "s"
        for name in (path, first):
            if len(os.fsencode(name)) > _MAX_UNIX_PATH:
                raise EndpointRefused(
                    f"unix listener: {path} is too long for a socket (limit {_MAX_UNIX_PATH} bytes with room "
                    "for a temporary name beside it); configure a shorter one"
                )
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.bind(str(first))
            first.chmod(0o600)
            sock.listen(_BACKLOG)
            first.replace(path)
        except BaseException:
            sock.close()
            raise
    return sock


def _remove_if_same(path: Path, mine: os.stat_result) -> None:
    try:
        now = os.lstat(path)
        if (now.st_dev, now.st_ino) == (mine.st_dev, mine.st_ino):
            path.unlink()
    except OSError as e:
        if e.errno != errno.ENOENT:
            raise
