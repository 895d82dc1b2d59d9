"""The CUDA driver's own calls, in the context that torch works in."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import torch

DRIVER = "libcuda.so.1"
_OUT_OF_MEMORY = 2


@cache
def driver() -> ctypes.CDLL:
    """Return the driver; the context that torch works in is current from here on."""
    torch.zeros(1, device="cuda")
    return ctypes.CDLL(DRIVER)


def ask(name: str, *arguments: object) -> None:
    """Call a function of the driver.

    Raises:
        MemoryError: the device has no room.
        RuntimeError: it refuses.
    """
    code = int(getattr(driver(), name)(*arguments))
    if code == _OUT_OF_MEMORY:
        raise MemoryError("the device has no room for another block")
    if code:
        raise RuntimeError(f"{name}: CUDA driver error {code}")


def ref(value: Any) -> Any:  # noqa: ANN401 - ctypes types no references
    """Return a ctypes reference."""
    return ctypes.byref(value)


class Kernel:
    """A kernel of an image that was loaded."""

    def __init__(self, module: ctypes.c_void_p, name: str, kinds: tuple[Any, ...]) -> None:
        """Find it.

        Args:
            module: as `load_image` returns it.
            name: not mangled.
            kinds: ctypes of its arguments.

        Raises:
            RuntimeError: there is none of that name.
        """
        self._function = ctypes.c_void_p()
        ask("cuModuleGetFunction", ref(self._function), module, name.encode())
        # One set of arguments, written anew for each launch: the driver copies them.
        self._values = [kind() for kind in kinds]
        pointers = (ctypes.c_void_p(ctypes.addressof(value)) for value in self._values)
        self._arguments = (ctypes.c_void_p * len(kinds))(*pointers)
        self._launch = driver().cuLaunchKernel

    def __call__(self, *arguments: int, blocks: int, threads: int, stream: ctypes.c_void_p) -> None:
        """Queue a launch.

        Raises:
            RuntimeError: the driver refuses.
        """
        for value, argument in zip(self._values, arguments, strict=True):
            value.value = argument
        code = self._launch(
            self._function, blocks, 1, 1, threads, 1, 1, 0, stream, self._arguments, None
        )
        if code:
            raise RuntimeError(f"cuLaunchKernel: CUDA driver error {code}")


def load_image(image: bytes) -> ctypes.c_void_p:
    """Load a compiled image; return its module, which lives as long as the context.

    Raises:
        RuntimeError: it is for another device.
    """
    module = ctypes.c_void_p()
    ask("cuModuleLoadData", ref(module), image)
    return module
