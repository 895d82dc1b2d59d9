"""Messages between processes: length-prefixed JSON over a socket, with file descriptors beside it.

Never pickle: what a child sends is parsed as untrusted JSON of bounded size.
"""

from __future__ import annotations

import array
import json
import os
import select
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

MAX_REPLY_BYTES = 256 * 1024
"""Most that is read of one message of a child."""
MAX_FDS = 200
"""File descriptors in one message; the kernel takes 253."""

_HEADER = struct.Struct("!I")


class ChannelClosed(Exception):
    """The other side is gone."""


class ChannelGarbled(Exception):
    """The other side sent something that is no message."""


class Channel:
    """One end of a conversation. Not for several threads."""

    def __init__(self, sock: socket.socket, *, max_bytes: int | None = None) -> None:
        """Wrap a connected stream socket.

        Args:
            sock: owned from now on.
            max_bytes: largest message that is accepted; None for any (from a trusted side).
        """
        self._socket = sock
        self._max_bytes = max_bytes

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self._socket.fileno()

    def send(self, message: dict[str, Any], *, fds: Sequence[int] = ()) -> None:
        """Send a message with at most MAX_FDS descriptors.

        Raises:
            ChannelClosed: nobody reads any more.
        """
        payload = json.dumps(message).encode()
        data = _HEADER.pack(len(payload)) + payload
        try:
            self._socket.settimeout(None)
            sent = 0
            if fds:
                sent = socket.send_fds(self._socket, [data], list(fds))
            self._socket.sendall(data[sent:])
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def wait(self, timeout_s: float) -> bool:
        """Return whether the other side said something, or ended, within so many seconds."""
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        return bool(waiting.poll(timeout_s * 1e3))

    def receive(self, *, timeout_s: float | None = None) -> tuple[dict[str, Any], list[int]]:
        """Return the next message and its descriptors.

        Raises:
            TimeoutError: no whole message came in time.
            ChannelClosed: the other side ended.
            ChannelGarbled: the message is too large or no JSON object.
        """
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        fds: list[int] = []
        try:
            (length,) = _HEADER.unpack(self._read(_HEADER.size, deadline_s, fds))
            if self._max_bytes is not None and length > self._max_bytes:
                raise ChannelGarbled(f"a message of {length} bytes; at most {self._max_bytes}")
            payload = self._read(length, deadline_s, fds)
            message = json.loads(payload)
            if self._max_bytes is not None and b"\\ud" in payload.lower():
                json.dumps(message, ensure_ascii=False).encode()  # half a surrogate pair is no text
        except (ValueError, RecursionError) as error:
            raise ChannelGarbled(f"not JSON: {str(error)[:200]}") from error
        if not isinstance(message, dict):
            raise ChannelGarbled(f"expected an object, found {type(message).__name__}")
        return message, fds

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def _read(self, length: int, deadline_s: float | None, fds: list[int]) -> bytes:
        data = bytearray()
        while len(data) < length:
            left_s = None if deadline_s is None else deadline_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                raise TimeoutError
            self._socket.settimeout(left_s)
            try:
                chunk = self._receive_some(min(length - len(data), 1 << 20), fds)
            except TimeoutError:
                raise
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not chunk:
                raise ChannelClosed("end of stream")
            data += chunk
        return bytes(data)

    def _receive_some(self, size: int, fds: list[int]) -> bytes:
        room = socket.CMSG_SPACE(MAX_FDS * array.array("i").itemsize)
        chunk, ancillary, _, _ = self._socket.recvmsg(size, room, socket.MSG_CMSG_CLOEXEC)
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                received = array.array("i")
                received.frombytes(data[: len(data) - len(data) % received.itemsize])
                if self._max_bytes is None:
                    fds.extend(received)
                else:  # a child has no descriptors to give
                    for fd in received:
                        os.close(fd)
        return chunk
