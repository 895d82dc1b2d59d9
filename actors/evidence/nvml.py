"""The GPU's energy counter, power and clock, by NVML; nothing is ever set.

The counter is cumulative (millijoules), refreshed about ten times a second; it answers on an H200
(profiling notes §E). nvidia-ml-py is optional.
"""

from __future__ import annotations

import importlib.util
import os
from types import TracebackType
from typing import Any

from kopt.actors.evidence.capabilities import Ability
from kopt.errors import ProfileFailed

_FIX = "install kopt[gpu] (nvidia-ml-py)"


class Meter:
    """Reads one GPU; a context manager."""

    def __init__(self, index: int = 0) -> None:
        """Name the GPU by its place among those visible to this process."""
        self._index = index
        self._nvml: Any = None
        self._handle: Any = None

    def __enter__(self) -> Meter:
        """Open NVML.

        Raises:
            ProfileFailed: nvidia-ml-py, the driver or the GPU is not here.
        """
        try:
            import pynvml
        except ImportError:
            raise ProfileFailed(f"energy: nvidia-ml-py is not installed; {_FIX}") from None
        self._nvml = pynvml
        try:
            pynvml.nvmlInit()
            self._handle = _handle(pynvml, self._index)
        except pynvml.NVMLError as error:
            raise ProfileFailed(f"energy: NVML does not answer ({error})") from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close NVML."""
        self._nvml.nvmlShutdown()

    def energy_mj(self) -> float:
        """Return the energy drawn since the driver was loaded, millijoules.

        Raises:
            ProfileFailed: this GPU has no such counter.
        """
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))
        except self._nvml.NVMLError as error:
            raise ProfileFailed(f"energy: this GPU has no energy counter ({error})") from None

    def clock_mhz(self) -> float:
        """Return the clock of the multiprocessors, MHz.

        Raises:
            ProfileFailed: it cannot be read.
        """
        try:
            kind = self._nvml.NVML_CLOCK_SM
            return float(self._nvml.nvmlDeviceGetClockInfo(self._handle, kind))
        except self._nvml.NVMLError as error:
            raise ProfileFailed(f"energy: the clock cannot be read ({error})") from None

    def uuid(self) -> str:
        """Return the name that the GPU has everywhere.

        Raises:
            ProfileFailed: it cannot be read.
        """
        try:
            name = self._nvml.nvmlDeviceGetUUID(self._handle)
        except self._nvml.NVMLError as error:
            raise ProfileFailed(f"the GPU's UUID cannot be read ({error})") from None
        return name.decode() if isinstance(name, bytes) else str(name)

    def memory_errors(self) -> int | None:
        """Return the memory errors that were not corrected since the driver was loaded.

        None where the GPU does not count them (ECC is off, or it has none).
        """
        nvml = self._nvml
        kinds = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        try:
            return int(nvml.nvmlDeviceGetTotalEccErrors(self._handle, *kinds))
        except nvml.NVMLError:
            return None


def nvml_ability() -> Ability:
    """Return whether the energy counter answers."""
    if importlib.util.find_spec("pynvml") is None:
        return Ability(ok=False, found="nvidia-ml-py is not installed", fix=_FIX)
    try:
        with Meter() as meter:
            return Ability(ok=True, found=f"counter at {meter.energy_mj() / 1e3:.0f} J")
    except ProfileFailed as error:
        return Ability(ok=False, found=str(error), fix="a GPU from Volta on, and its driver")


def _handle(nvml: Any, index: int) -> Any:  # noqa: ANN401 - pynvml is untyped
    """The GPU that CUDA calls `index`: NVML numbers all of the machine's."""
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    name = visible[index].strip() if index < len(visible) else str(index)
    if name.startswith(("GPU-", "MIG-")):
        return nvml.nvmlDeviceGetHandleByUUID(name.encode())
    return nvml.nvmlDeviceGetHandleByIndex(int(name))
