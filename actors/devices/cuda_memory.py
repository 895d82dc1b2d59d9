"""Device memory that two processes map: an allocation of its own, passed by descriptor.

The driver's virtual memory management gives each block physical memory that nothing else lies in,
so that whoever maps it sees that buffer and nothing beside it; the older handles of CUDA IPC map
whole segments of torch's allocator, and stop at the borders of PID namespaces. A descriptor passes
through a socket like any other. Source: CUDA driver API, "Virtual Memory Management".
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

from kopt.actors.child.memory import DTYPES
from kopt.actors.child.tensor_spec import Lent, Place, TensorSpec
from kopt.actors.devices.cuda_driver import ask, ref

_POSIX_FD = 1
_ON_DEVICE = 1
_PINNED = 1
_READ_WRITE = 3
SPARE_BYTES = 1 << 30
"""That torch may keep for later in a process: less is not worth a call of the driver."""


def let_go() -> None:
    """Give back the memory that torch keeps for later, where it is much: other processes need it.

    A problem with gigabytes of inputs has a dozen processes at it, and what each has needed at most
    would otherwise be taken for good.
    """
    if torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > SPARE_BYTES:
        torch.cuda.empty_cache()


class _Location(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("device", ctypes.c_int))


class _AllocationFlags(ctypes.Structure):
    _fields_ = (
        ("compression", ctypes.c_ubyte),
        ("rdma", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    )


class _AllocationProperties(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int),
        ("handle_kinds", ctypes.c_int),
        ("location", _Location),
        ("windows_only", ctypes.c_void_p),
        ("flags", _AllocationFlags),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class DeviceBlock:
    """Physical memory of the current device, mapped in this process; freed when nobody maps it.

    It stays mapped while a tensor of it lives.
    """

    def __init__(self, num_bytes: int, *, handle: int | None = None) -> None:
        """Allocate a block, or map one whose handle was imported.

        Args:
            num_bytes: that it holds at least, > 0.
            handle: of `imported`; None allocates.

        Raises:
            MemoryError: the device has no room.
            RuntimeError: the driver refuses.
        """
        self.num_bytes = num_bytes
        self._size = -(-num_bytes // _granularity()) * _granularity()
        self._handle = ctypes.c_uint64(handle or 0)
        self._address = ctypes.c_uint64()
        self._is_mapped = False
        if handle is None:
            self._allocate()
        try:
            ask(
                "cuMemAddressReserve",
                ref(self._address),
                _size(self._size),
                _size(0),
                ctypes.c_uint64(0),
                _flags,
            )
            ask("cuMemMap", self._address, _size(self._size), _size(0), self._handle, _flags)
            self._is_mapped = True
            access = _Access(_here(), _READ_WRITE)
            ask("cuMemSetAccess", self._address, _size(self._size), ref(access), _size(1))
        except BaseException:
            self.close()
            raise

    def _allocate(self) -> None:
        wanted = (ref(self._handle), _size(self._size), ref(_properties()), _flags)
        try:
            ask("cuMemCreate", *wanted)
        except MemoryError:
            torch.cuda.empty_cache()  # it may be here that the memory is
            ask("cuMemCreate", *wanted)

    @classmethod
    def imported(cls, fd: int, *, num_bytes: int) -> DeviceBlock:
        """Map a block that another process exported; the descriptor stays the caller's.

        Raises:
            RuntimeError: it is no such descriptor.
        """
        handle = ctypes.c_uint64()
        ask("cuMemImportFromShareableHandle", ref(handle), ctypes.c_void_p(fd), _POSIX_FD)
        return cls(num_bytes, handle=handle.value)

    def export(self) -> int:
        """Return a new descriptor of the block; whoever has it can map it. The caller closes it.

        Raises:
            RuntimeError: the driver refuses.
        """
        fd = ctypes.c_int(-1)
        ask("cuMemExportToShareableHandle", ref(fd), self._handle, _POSIX_FD, _flags)
        os.set_inheritable(fd.value, False)  # noqa: FBT003 - its own signature
        return fd.value

    def view(self, spec: TensorSpec) -> torch.Tensor:
        """Return the block as a dense tensor, which keeps it alive."""
        raw = torch.as_tensor(_Exposed(self), device="cuda")
        return raw[: spec.num_bytes].view(DTYPES[spec.dtype]).view(spec.shape)

    def close(self) -> None:
        """Unmap it, once the device has ended what uses it. A second time does nothing."""
        if self._is_mapped:
            torch.cuda.synchronize()
            ask("cuMemUnmap", self._address, _size(self._size))
            self._is_mapped = False
        if self._address.value:
            ask("cuMemAddressFree", self._address, _size(self._size))
            self._address.value = 0
        if self._handle.value:
            ask("cuMemRelease", self._handle)
            self._handle.value = 0

    @property
    def address(self) -> int:
        """Where it is mapped; 0 once it is closed."""
        return int(self._address.value)

    def __del__(self) -> None:
        self.close()


class _Exposed:
    """What torch reads to make a tensor of a block without a copy."""

    def __init__(self, block: DeviceBlock) -> None:
        self.block = block
        self.__cuda_array_interface__ = {
            "shape": (block.num_bytes,),
            "typestr": "|u1",
            "data": (block.address, False),
            "version": 3,
            "strides": None,
        }


class DeviceTensor:
    """A dense tensor in a block of its own: `kopt.actors.child.memory.SharedTensor` on a GPU."""

    place: Place = "cuda"

    def __init__(self, spec: TensorSpec) -> None:
        """Make one, its content undefined.

        Raises:
            MemoryError: the device has no room.
        """
        self.spec = spec
        self._block: DeviceBlock | None = DeviceBlock(max(spec.num_bytes, 1))
        self.tensor = self._block.view(spec)
        self.is_sealed = False

    def like(self) -> DeviceTensor:
        """Return another of the same form."""
        return DeviceTensor(self.spec)

    def seal(self) -> DeviceTensor:
        """Let nobody write from now on but through `tensor`: who is lent it gets a copy."""
        self.is_sealed = True
        return self

    @contextmanager
    def lent(self) -> Iterator[Lent]:
        """Give a descriptor for another process to map: of itself, or of a copy once sealed.

        The copy is that process's own; it is freed with the last mapping.

        Raises:
            MemoryError: there is no room for a copy.
            RuntimeError: it is closed.
        """
        block = self._block
        if block is None:
            raise RuntimeError("a closed tensor cannot be lent")
        if self.is_sealed:
            block = DeviceBlock(max(self.spec.num_bytes, 1))
            block.view(self.spec).copy_(self.tensor)
        torch.cuda.synchronize()  # whoever maps it works on another stream
        fd = block.export()
        try:
            yield Lent(fd, self.spec, self.place, is_private=self.is_sealed)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Give the memory back once nobody maps it; a second time does nothing."""
        self.__dict__.pop("tensor", None)
        self._block = None


def map_device_tensor(fd: int, spec: TensorSpec) -> torch.Tensor:
    """Map a block that was lent as a dense tensor; the descriptor stays the caller's.

    Raises:
        RuntimeError: it is no such descriptor.
    """
    return DeviceBlock.imported(fd, num_bytes=max(spec.num_bytes, 1)).view(spec)


_flags = ctypes.c_ulonglong(0)


def _size(value: int) -> ctypes.c_size_t:
    return ctypes.c_size_t(value)


def _here() -> _Location:
    return _Location(_ON_DEVICE, torch.cuda.current_device())


def _properties() -> _AllocationProperties:
    return _AllocationProperties(kind=_PINNED, handle_kinds=_POSIX_FD, location=_here())


@cache
def _granularity() -> int:
    size = ctypes.c_size_t()
    ask("cuMemGetAllocationGranularity", ref(size), ref(_properties()), 0)
    return int(size.value)
