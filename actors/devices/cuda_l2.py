"""The part of a GPU's L2 that is set aside for lines that persist, through the driver's own calls.

A kernel may ask that its lines stay in the L2 (an access policy window): then no flush evicts them,
and a call that should be cold finds its weights there. The driver is called, not the runtime: what
the driver refuses leaves no error behind for torch to find after the next launch. It refuses where
there is no such part (before sm_80, under MIG or MPS), and then there is nothing to let go.

Source: exploits 32; CUDA driver API, cuCtxResetPersistingL2Cache and CU_LIMIT_PERSISTING_L2_CACHE_
SIZE.
"""

from __future__ import annotations

import ctypes
from typing import Any

from kopt.actors.devices.cuda_driver import DRIVER

PERSISTING_L2_CACHE_SIZE = 0x06
"""CU_LIMIT_PERSISTING_L2_CACHE_SIZE."""


class PersistingL2:
    """Of the context that is current; made before untrusted code could replace what it calls."""

    def __init__(self, library: str = DRIVER) -> None:
        """Bind the driver's functions; without a driver that has them nothing is done."""
        self._set_limit: Any = None
        self._get_limit: Any = None
        self._reset: Any = None
        try:
            driver = ctypes.CDLL(library)
            self._set_limit = driver.cuCtxSetLimit
            self._set_limit.argtypes = (ctypes.c_int, ctypes.c_size_t)
            self._get_limit = driver.cuCtxGetLimit
            self._get_limit.argtypes = (ctypes.POINTER(ctypes.c_size_t), ctypes.c_int)
            self._reset = driver.cuCtxResetPersistingL2Cache
            self._reset.argtypes = ()
        except (OSError, AttributeError):
            return

    def let_go(self) -> None:
        """Set nothing aside, and make the lines that persist ordinary ones.

        Takes effect at once, not in the order of a stream: kernels that wait there find nothing
        set aside either.
        """
        if self._reset is None:
            return
        if self.set_aside_bytes() > 0:
            self._set_limit(PERSISTING_L2_CACHE_SIZE, 0)
        self._reset()

    def set_aside_bytes(self) -> int:
        """Return what is set aside now; 0 where there is no such part."""
        if self._reset is None:
            return 0
        size = ctypes.c_size_t(0)
        status = self._get_limit(ctypes.byref(size), PERSISTING_L2_CACHE_SIZE)
        return int(size.value) if status == 0 else 0
