"""Tensors in memory that two processes map: anonymous files without a name, passed by descriptor.

A tensor has a file of its own, so that whoever maps it sees that buffer and nothing beside it, and
nothing has to be cleaned up when a process dies. A sealed tensor can be read by whoever has its
descriptor and written by nobody: a child that maps it gets pages of its own where it writes.
"""

from __future__ import annotations

import fcntl
import math
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import torch

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        "float64",
        "float32",
        "float16",
        "bfloat16",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint8",
        "bool",
        "complex64",
        "complex128",
        "float8_e4m3fn",
        "float8_e5m2",
    )
}


MAX_ELEMENTS = 1 << 48
"""More than any machine has room for; torch counts no further than 2**63."""
MAX_DIMENSIONS = 64

LARGE_BYTES = 64 << 20
"""Above this it is asked first whether there is room: the kernel allocates until it kills."""

_F_SEAL_FUTURE_WRITE = 0x0010  # not in the fcntl module
_CGROUP = Path("/sys/fs/cgroup")
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | _F_SEAL_FUTURE_WRITE


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape and dtype of a dense tensor."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def num_bytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.shape) * DTYPES[self.dtype].itemsize

    def to_json(self) -> list[object]:
        """Return the form that `spec_from_json` takes back."""
        return [list(self.shape), self.dtype]


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    """Return a tensor's shape and dtype."""
    return TensorSpec(tuple(tensor.shape), dtype_name(tensor.dtype))


def dtype_name(dtype: torch.dtype) -> str:
    """Return `float32` for torch.float32."""
    return str(dtype).removeprefix("torch.")


def spec_from_json(value: object) -> TensorSpec:
    """Return the spec of its JSON form, which may come from an untrusted side.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, list) and len(value) == 2 and str(value[1]) in DTYPES:
        shape = value[0]
        if (
            isinstance(shape, list)
            and len(shape) <= MAX_DIMENSIONS
            and all(type(n) is int and 0 <= n <= MAX_ELEMENTS for n in shape)
            and math.prod(max(n, 1) for n in shape) <= MAX_ELEMENTS
        ):
            return TensorSpec(tuple(shape), str(value[1]))
    raise ValueError(f"not a tensor spec: {str(value)[:100]}")


def available_bytes() -> int:
    """Return the host memory that is available now, to this container where it is limited."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with open("/proc/meminfo", encoding="ascii") as meminfo:
        for line in meminfo:
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    limit = _CGROUP / "memory.max"
    if not limit.exists() or limit.read_text(encoding="ascii").strip() == "max":
        return free
    used = int((_CGROUP / "memory.current").read_text(encoding="ascii"))
    for line in (_CGROUP / "memory.stat").read_text(encoding="ascii").splitlines():
        if line.startswith("inactive_file "):
            used -= int(line.split()[1])  # the page cache makes room
    return min(free, max(int(limit.read_text(encoding="ascii")) - used, 0))


Place = Literal["cpu", "cuda"]


class Lent(NamedTuple):
    """A tensor as it is passed to another process."""

    fd: int
    spec: TensorSpec
    place: Place
    is_private: bool
    """What that process writes is seen by nobody else."""


class Shareable(Protocol):
    """A dense tensor that another process can map, in host memory or a GPU's."""

    spec: TensorSpec
    tensor: torch.Tensor
    is_sealed: bool

    def like(self) -> Shareable:
        """Return another of the same form in the same place, its content undefined.

        Raises:
            MemoryError: there is no room.
        """
        ...

    def seal(self) -> Shareable:
        """Let nobody write from now on but through `tensor`; return the tensor itself."""
        ...

    def lent(self) -> AbstractContextManager[Lent]:
        """Give a descriptor for another process to map."""
        ...

    def close(self) -> None:
        """Give the memory back once nobody maps it; a second time does nothing."""
        ...


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
