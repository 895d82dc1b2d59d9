"""NVRTC, the compiler that torch's CUDA builds come with: found without loading torch."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path


def load_nvrtc(major: str, *, packages: Path) -> ctypes.CDLL:
    """Load the library.

    Args:
        major: release of CUDA, `13`.
        packages: folder that torch is installed in, beside which its libraries may lie.

    Raises:
        RuntimeError: there is none.
    """
    name = f"libnvrtc.so.{major}"
    for path in _places(name, packages):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise RuntimeError(
        f"{name} is not found, which torch's CUDA builds come with: install the package "
        "nvidia-cuda-nvrtc, or put its folder into LD_LIBRARY_PATH"
    )


def _places(name: str, packages: Path) -> Iterator[str]:
    """Torch's own first: a system's may be older than the GPU."""
    for pattern in (f"nvidia/*/lib/{name}", f"torch/lib/{name}*"):
        yield from (str(path) for path in sorted(packages.glob(pattern)))
    yield name
