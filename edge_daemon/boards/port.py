"""One serial port under trio: opened by pyserial, read and written by ourselves without a thread."""

import contextlib
import errno
import fcntl
import os
import struct
import termios
from typing import Protocol

import serial
import trio

from edge_daemon.boards.errors import PortBusy, PortDenied, PortError, PortGone, PortMissing, PortUnusable
from edge_daemon.holders import find_holders

READ_SIZE = 4096
# The kernel may hold close() for 30 s while a stuck line does not drain; its thread may have that time.
CLOSE_WAIT_S = 2.0
_CONTROL_CHARACTERS = 6
# Major numbers of Unix 98 pseudo terminals.
_PTY_MAJORS = range(136, 144)


class Port(Protocol):
    """What a link needs of an open line; SerialPort is the one there is."""

    bytes_written: int

    async def read(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    def write_now(self, data: bytes) -> int: ...

    def stop_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    async def aclose(self) -> None: ...


class SerialPort:
    """An open serial port, exclusively ours, raw 8N1.

    One task may read while another writes. Any method raises PortGone once the other end has hung up, or
    after aclose().
    """

    def __init__(self, device: serial.Serial, path: str) -> None:
        self._device = device
        self._fd = device.fileno()
        self._closed = False
        self._writing_stopped = False
        self.path = path
        self.bytes_written = 0
        self.bytes_read = 0

    @classmethod
    async def open(cls, path: str, baudrate: int = 115_200) -> "SerialPort":
        """Open and configure, in a worker thread: a driver may take seconds to say that its device is dead.

        Raises PortMissing, PortBusy (with the holder's name), PortDenied or PortUnusable. Cancellation is
        seen once the attempt has ended.
        """
        return cls(await trio.to_thread.run_sync(_open_device, path, baudrate), path)

    async def read(self) -> bytes:
        """The next bytes, at least one. Cancellation loses none. Raises PortGone."""
        while True:
            self._check_open()
            try:
                await trio.lowlevel.wait_readable(self._fd)
                data = os.read(self._fd, READ_SIZE)
            except BlockingIOError:
                # Whoever cancelled this may be waiting for the line by now, and only one task can.
                await trio.lowlevel.checkpoint_if_cancelled()
                continue
            except trio.ClosedResourceError:
                raise self._gone("it was closed here") from None
            except OSError as err:
                raise self._gone(os.strerror(err.errno or 0)) from err
            if not data:
                raise self._gone("end of file")
            self.bytes_read += len(data)
            return data

    async def write(self, data: bytes) -> None:
        """Write all of data; bytes_written says how far it came when this is cancelled. Raises PortGone."""
        rest = memoryview(data)
        await trio.lowlevel.checkpoint()
        while rest:
            written = self.write_now(rest)
            rest = rest[written:]
            if not written:
                await self._wait_writable()

    def write_now(self, data: bytes | memoryview) -> int:
        """Write what the kernel takes at once, without waiting; returns how much. Raises PortGone."""
        self._check_open()
        if self._writing_stopped:
            raise self._gone("writing was stopped here")
        try:
            written = os.write(self._fd, data)
        except BlockingIOError:
            return 0
        except OSError as err:
            raise self._gone(os.strerror(err.errno or 0)) from err
        self.bytes_written += written
        return written

    def stop_writing(self) -> None:
        """From now on no byte leaves, not even of a write() that is under way: that one raises PortGone."""
        self._writing_stopped = True

    def resume_writing(self) -> None:
        """For a new link on the same open port."""
        self._writing_stopped = False

    async def aclose(self) -> None:
        """Close without waiting for output that no longer drains; never blocks the loop, may be repeated."""
        if self._closed:
            return
        self._closed = True
        trio.lowlevel.notify_closing(self._fd)
        # Bytes that wait for a dead line would keep the kernel in close().
        with contextlib.suppress(termios.error):
            termios.tcflush(self._fd, termios.TCOFLUSH)
        with trio.move_on_after(CLOSE_WAIT_S, shield=True):
            await trio.to_thread.run_sync(_close_device, self._device, abandon_on_cancel=True)

    async def _wait_writable(self) -> None:
        try:
            await trio.lowlevel.wait_writable(self._fd)
        except trio.ClosedResourceError:
            raise self._gone("it was closed here") from None

    def _check_open(self) -> None:
        if self._closed:
            raise self._gone("it was closed here")

    def _gone(self, why: str) -> PortGone:
        return PortGone(f"the port {self.path} is gone ({why}): unplugged, or the board re-enumerated")


def _open_device(path: str, baudrate: int) -> serial.Serial:
    device = serial.Serial(baudrate=baudrate, exclusive=True)
    device.port = path
    # The usual auto-reset circuit holds an ESP32 in reset while RTS is asserted and DTR is not. Linux raises both
    # at open; pyserial lowering one after the other would pass through just that. _lower_modem_lines() follows.
    device.dtr = True
    device.rts = True
    try:
        device.open()
    except serial.SerialException as err:
        raise _why_not(path, err) from err
    try:
        _configure(device.fileno(), path)
    except BaseException:
        device.close()
        raise
    return device


def _configure(fd: int, path: str) -> None:
    _lower_modem_lines(fd)
    settings = termios.tcgetattr(fd)
    # Closing must not drop DTR, which would reset the board.
    settings[2] &= ~termios.HUPCL
    # pyserial leaves VMIN at 0, which makes an idle read look like a hang-up.
    settings[_CONTROL_CHARACTERS][termios.VMIN] = 1
    settings[_CONTROL_CHARACTERS][termios.VTIME] = 0
    termios.tcsetattr(fd, termios.TCSANOW, settings)
    os.set_blocking(fd, False)
    if os.major(os.fstat(fd).st_rdev) in _PTY_MAJORS:
        # Whoever made a pseudo terminal usually keeps this end open as well; our lock is enough there.
        return
    fcntl.ioctl(fd, termios.TIOCEXCL)
    _refuse_other_openers(path)


def _lower_modem_lines(fd: int) -> None:
    """DTR and RTS off in one request to the adapter."""
    try:
        fcntl.ioctl(fd, termios.TIOCMBIC, struct.pack("@i", termios.TIOCM_DTR | termios.TIOCM_RTS))
    except OSError as err:
        # A pseudo terminal has no such lines.
        if err.errno not in (errno.ENOTTY, errno.EINVAL):
            raise


def _refuse_other_openers(path: str) -> None:
    """A program that had the port open before us, without a lock, would still take half of the bytes."""
    if find_holders(path):
        raise _busy(path)


def _busy(path: str) -> PortBusy:
    holders = find_holders(path)
    names = ", ".join(map(str, holders)) if holders else "this process itself, or one that cannot be seen"
    return PortBusy(f"the port {path} is in use by {names}: stop that program first")


def _why_not(path: str, err: serial.SerialException) -> PortError:
    code = err.errno
    if code in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return PortMissing(f"there is no port {path}: is the board plugged in and powered?")
    if code in (errno.EBUSY, errno.EAGAIN):
        return _busy(path)
    if code in (errno.EACCES, errno.EPERM):
        return PortDenied(f"no permission to open {path}: this user must be in the device's group (dialout)")
    return PortUnusable(f"{path} cannot be used as a serial port: {err}")


def _close_device(device: serial.Serial) -> None:
    # Closing a port whose device has left may fail with EIO; there is nothing left to give back.
    with contextlib.suppress(OSError):
        device.close()
