"""Listeners: private from their first moment, stale sockets replaced, living ones left alone."""

import os
import socket
import stat
from pathlib import Path

import pytest
import trio

from edge_daemon.upstream import EndpointRefused, TcpEndpoint
from edge_daemon.upstream.auth import SecretRefused, load_secret
from edge_daemon.upstream.listeners import open_tcp, unix_listener


async def test_a_socket_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with unix_listener(tmp_path / "s"):
            assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
            assert stat.S_IMODE((tmp_path / "s.lock").stat().st_mode) == 0o600
    finally:
        os.umask(before)


async def test_nothing_but_the_lock_is_left_behind(tmp_path: Path) -> None:
    with unix_listener(tmp_path / "s"):
        assert sorted(path.name for path in tmp_path.iterdir()) == ["s", "s.lock"]
    assert [path.name for path in tmp_path.iterdir()] == ["s.lock"]


async def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(tmp_path / "s"))
    dead.close()
    with unix_listener(tmp_path / "s") as listener:
        async with await trio.open_unix_socket(tmp_path / "s"), await listener.accept():
            pass


async def test_a_socket_somebody_listens_on_is_left_alone(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(str(tmp_path / "s"))
        alive.listen()
        with pytest.raises(EndpointRefused, match="somebody listens"), unix_listener(tmp_path / "s"):
            pass
        async with await trio.open_unix_socket(tmp_path / "s"):
            pass


async def test_a_second_daemon_is_refused_by_the_lock(tmp_path: Path) -> None:
    with (
        unix_listener(tmp_path / "s"),
        pytest.raises(EndpointRefused, match="another daemon"),
        unix_listener(tmp_path / "s"),
    ):
        pass


async def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("precious")
    with pytest.raises(EndpointRefused, match="no socket"), unix_listener(tmp_path / "s"):
        pass
    assert (tmp_path / "s").read_text() == "precious"


async def test_a_link_in_the_sockets_place_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("precious")
    (tmp_path / "s").symlink_to(tmp_path / "target")
    with pytest.raises(EndpointRefused, match="no socket"), unix_listener(tmp_path / "s"):
        pass
    assert (tmp_path / "target").read_text() == "precious"


async def test_a_socket_that_is_no_longer_ours_is_not_removed(tmp_path: Path) -> None:
    with unix_listener(tmp_path / "s"):
        (tmp_path / "s").unlink()
        (tmp_path / "s").write_text("somebody else's")
    assert (tmp_path / "s").exists()


async def test_a_missing_directory_or_a_long_path_is_said(tmp_path: Path) -> None:
    with pytest.raises(EndpointRefused, match="No such file"), unix_listener(tmp_path / "no" / "s"):
        pass
    long = tmp_path / ("d" * 100)
    long.mkdir()
    with pytest.raises(EndpointRefused, match="too long"), unix_listener(long / "s"):
        pass


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "rig-7.example", ""])
def test_tcp_beyond_loopback_is_refused_unless_allowed(host: str, tmp_path: Path) -> None:
    with pytest.raises(EndpointRefused, match="allow_beyond_loopback"):
        TcpEndpoint(host, 7000, tmp_path / "token")
    TcpEndpoint(host, 7000, tmp_path / "token", allow_beyond_loopback=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_tcp_on_loopback_is_allowed(host: str, tmp_path: Path) -> None:
    TcpEndpoint(host, 7000, tmp_path / "token")


async def test_a_taken_port_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EndpointRefused, match=str(port)):
            await open_tcp(TcpEndpoint("127.0.0.1", port, tmp_path / "token"))


def test_a_token_file_serves_without_its_line_end(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"a" * 32 + b"\r\n")
    path.chmod(0o600)
    assert load_secret(path) == b"a" * 32


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        (b"a" * 31 + b"\n", 0o600, "31 bytes"),
        (b"a" * 1025, 0o600, "1025 bytes"),
        (b"a" * 32, 0o640, "open to others"),
        (b"a" * 32, 0o604, "open to others"),
    ],
)
def test_a_weak_or_open_token_file_is_refused(tmp_path: Path, content: bytes, mode: int, why: str) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(mode)
    with pytest.raises(SecretRefused, match=why):
        load_secret(path)


def test_a_missing_token_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(SecretRefused, match="openssl"):
        load_secret(tmp_path / "token")
