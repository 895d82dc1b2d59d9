"""The child's side of a release page: queued calls wait for a word that the supervisor writes.

The device itself waits and reports, by the driver's stream memory operations; no thread of this
process has a part in it.
"""

from __future__ import annotations

import ctypes
import mmap
import struct

from kopt.actors.child.release import DONE, GO, KEY, LAST, PAGE_BYTES, QUEUED
from kopt.actors.devices.cuda_driver import ask, driver, ref

_PORTABLE_AND_MAPPED = 3
_AT_LEAST = 0
"""CU_STREAM_WAIT_VALUE_GEQ."""
_WORD = struct.Struct("<q")


class CudaGate:
    """Of one child; made before untrusted code could replace what it calls."""

    def __init__(self, fd: int) -> None:
        """Map the page and let the device see it; the descriptor stays the caller's.

        Raises:
            RuntimeError: the driver refuses.
        """
        self._page = mmap.mmap(fd, PAGE_BYTES)
        self._view = (ctypes.c_char * PAGE_BYTES).from_buffer(self._page)
        self._host = ctypes.addressof(self._view)
        ask(
            "cuMemHostRegister_v2",
            ctypes.c_void_p(self._host),
            ctypes.c_size_t(PAGE_BYTES),
            _PORTABLE_AND_MAPPED,
        )
        device = ctypes.c_uint64()
        ask("cuMemHostGetDevicePointer_v2", ref(device), ctypes.c_void_p(self._host), 0)
        self._device = device.value
        self._wait, self._write = driver().cuStreamWaitValue32_v2, driver().cuStreamWriteValue32_v2
        self._read, self._tell = driver().cuMemcpyHtoDAsync_v2, driver().cuMemcpyDtoHAsync_v2

    def hold(self, ticket: int, *, key_to: int, stream: ctypes.c_void_p) -> None:
        """Have the device wait for a block's release, then take its key.

        Args:
            ticket: of the block.
            key_to: address of a word on the device.
            stream: that the block is queued on.

        Raises:
            RuntimeError: the driver refuses.
        """
        word = ctypes.c_uint64(self._device + GO)
        _check(self._wait(stream, word, ctypes.c_uint32(ticket), _AT_LEAST), "a wait")
        key = ctypes.c_void_p(self._host + KEY)
        _check(self._read(ctypes.c_uint64(key_to), key, ctypes.c_size_t(8), stream), "a copy")

    def report(self, ticket: int, *, digest_at: int, stream: ctypes.c_void_p) -> None:
        """Have the device tell the last digest and that the block is done; all is queued now.

        Args:
            ticket: of the block.
            digest_at: address of that digest on the device.
            stream: that the block is queued on.

        Raises:
            RuntimeError: the driver refuses.
        """
        last = ctypes.c_void_p(self._host + LAST)
        _check(self._tell(last, ctypes.c_uint64(digest_at), ctypes.c_size_t(8), stream), "a copy")
        word = ctypes.c_uint64(self._device + DONE)
        _check(self._write(stream, word, ctypes.c_uint32(ticket), 0), "a write")
        _WORD.pack_into(self._page, QUEUED, ticket)


def _check(code: int, what: str) -> None:
    if code:
        raise RuntimeError(f"the driver does not queue {what} of a release: CUDA error {code}")
