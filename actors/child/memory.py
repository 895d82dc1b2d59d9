"""Tensors in memory that two processes map: anonymous files without a name, passed by descriptor.

A tensor has a file of its own, so that whoever maps it sees that buffer and nothing beside it, and
nothing has to be cleaned up when a process dies. A sealed tensor can be read by whoever has its
descriptor and written by nobody: a child that maps it gets pages of its own where it writes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from kopt.actors.child.host_memory import OF_THIS_SIZE, available_bytes
from kopt.actors.child.tensor_spec import ITEM_BYTES, Lent, TensorSpec

DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in ITEM_BYTES}

LARGE_BYTES = 64 << 20
"""Above this it is asked first whether there is room: the kernel allocates until it kills."""

_F_SEAL_FUTURE_WRITE = 0x0010  # not in the fcntl module
_SEALS = fcntl.F_SEAL_SEAL | OF_THIS_SIZE | _F_SEAL_FUTURE_WRITE


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    """Return a tensor's shape and dtype."""
    return TensorSpec(tuple(tensor.shape), dtype_name(tensor.dtype))


def dtype_name(dtype: torch.dtype) -> str:
    """Return `float32` for torch.float32."""
    return str(dtype).removeprefix("torch.")


class SharedTensor:
    """A dense tensor in anonymous shared memory; whoever has its descriptor can map it.

    Its descriptor goes with the object, so that an evaluation that ends early holds no memory.
    """

    fd = -1

    def __init__(self, spec: TensorSpec) -> None:
        """Make one, filled with zeros.

        Raises:
            MemoryError: there is not that much shared memory.
        """
        self.spec = spec
        if spec.num_bytes > LARGE_BYTES and spec.num_bytes > available_bytes():
            raise MemoryError(f"{spec.num_bytes} bytes of shared memory: more than is free")
        self.fd = os.memfd_create("kopt", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.posix_fallocate(self.fd, 0, max(spec.num_bytes, 1))
        except OSError as error:
            self.close()
            raise MemoryError(
                f"{spec.num_bytes} bytes of shared memory: {error.strerror}"
            ) from error
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, OF_THIS_SIZE)
        self.tensor = map_tensor(self.fd, spec, writable=True)
        self.is_sealed = False

    def like(self) -> SharedTensor:
        """Return another of the same form, filled with zeros.

        Raises:
            MemoryError: there is not that much shared memory.
        """
        return SharedTensor(self.spec)

    @contextmanager
    def lent(self) -> Iterator[Lent]:
        """Give its descriptor for another process to map."""
        yield Lent(self.fd, self.spec, "cpu", is_private=self.is_sealed)

    def seal(self) -> SharedTensor:
        """Let nobody write from now on but through `tensor`; return the tensor itself."""
        if not self.is_sealed:
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _SEALS)
            self.is_sealed = True
        return self

    def close(self) -> None:
        """Give the memory back once nobody maps it; a second time does nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        self.__dict__.pop("tensor", None)

    def __del__(self) -> None:
        self.close()


def map_tensor(fd: int, spec: TensorSpec, *, writable: bool) -> torch.Tensor:
    """Map a descriptor's memory as a dense tensor.

    Args:
        fd: of the memory.
        spec: what it holds.
        writable: writes go to the shared memory; otherwise to private copies of its pages.
    """
    if spec.num_bytes == 0:
        return torch.empty(spec.shape, dtype=DTYPES[spec.dtype])
    raw = torch.from_file(
        f"/proc/self/fd/{fd}", shared=writable, size=spec.num_bytes, dtype=torch.uint8
    )
    return raw.view(DTYPES[spec.dtype]).view(spec.shape)
