"""What a zygote loads once for all its children, no device touched: a child begins with it.

torch's compiler takes five seconds to import, what its fake tensors import with their first use
takes four, torch's builder of extensions a tenth; the key of Triton's cache is the hash of half a
gigabyte. None needs a device, but one import asks which kernels a GPU can run, and a process that
has asked forks children that cannot use the GPU. That import is told what is known anyway, in the
way in which torch tells its own compile workers, who may not ask either. Whether it helped is
looked at; where not, the zygote is of no use, and the next one loads no more than it must.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace

COMPILER = (
    "torch._inductor.codegen.cpp",
    "torch._inductor.codegen.cpp_wrapper_gpu",
    "torch._inductor.codegen.cuda_combined_scheduling",
    "torch._inductor.codegen.triton",
    "torch._inductor.compile_fx",
    "torch._inductor.fx_passes.efficient_conv_bn_eval",
    "torch._inductor.fx_passes.fuse_attention",
    "torch._inductor.fx_passes.pad_mm",
)
OBSERVER = (
    "torch._dynamo",  # by fake tensors, with the first that is made
    "kopt.actors.evidence.in_child",
    "kopt.actors.evidence.reference_work",
)
_DRIVER = "libcuda.so.1"
_NOT_INITIALISED = 3
"""CUDA_ERROR_NOT_INITIALIZED: what the driver answers before anybody asked it for devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preload:
    """What is loaded ahead."""

    compiles: bool = False
    """torch's compiler too, for children that compile."""
    observes: bool = False
    """What children need that count what a reference does, without computing it."""
    arch: str = ""
    """Of the GPU that children use or compile for, `sm_90`; empty where there is none."""
    uses_device: bool = False
    """Whether children use it: a zygote whose forks could not is of no use."""
    is_lean: bool = False
    """Only what every child needs, whatever else is said: the rest spoilt forks here."""

    @classmethod
    def from_words(cls, words: Sequence[str]) -> Preload:
        """Read what `words` wrote."""
        archs = [word.partition("=")[2] for word in words if word.startswith("arch=")]
        return cls(
            compiles="compile" in words,
            observes="observe" in words,
            arch="".join(archs),
            uses_device="device" in words,
            is_lean="lean" in words,
        )

    def words(self) -> list[str]:
        """Return words for a command line."""
        told = {
            "compile": self.compiles,
            "observe": self.observes,
            f"arch={self.arch}": bool(self.arch),
            "device": self.uses_device,
            "lean": self.is_lean,
        }
        return [word for word, is_said in told.items() if is_said]

    def load(self) -> str:
        """Load it all; return why forks of this process are of no use now, or nothing."""
        import torch

        from kopt.actors.devices.cuda_image import ImageAhead

        has_cuda = torch.version.cuda is not None
        chain = ImageAhead.begin(self.arch) if has_cuda and self.uses_device and self.arch else None
        try:
            return self._load(has_cuda=has_cuda)
        finally:
            if chain is not None:
                chain.finish()

    def _load(self, *, has_cuda: bool) -> str:
        for is_wanted, what, load in (
            (self.compiles, "torch's compiler", load_compiler),
            (self.observes, "what profiles", load_observer),
        ):
            if is_wanted and not self.is_lean:
                try:
                    load(self.arch)
                except (ImportError, AttributeError, TypeError, ValueError) as error:
                    return f"{what} cannot be loaded ahead: {error}"
        import kopt.actors.child.runner  # noqa: F401 - loaded once, for every child

        if has_cuda:
            load_triton("" if self.is_lean else self.arch)
        if self.is_lean:
            return ""
        with suppress(ImportError):  # it needs setuptools; candidates will say so themselves
            importlib.import_module("torch.utils.cpp_extension")
        return touched() if has_cuda and self.uses_device else ""


def load_compiler(arch: str = "") -> None:
    """Load torch's compiler and the key of its cache.

    Args:
        arch: of the GPU that is compiled for; empty where there is none, and whoever is imported
            may ask what there is.
    """
    with _device_known(arch):
        for name in COMPILER:
            importlib.import_module(name)
    from torch._inductor.codecache import torch_key

    torch_key()


def load_observer(arch: str = "") -> None:
    """Load what torch's profiler and its fake tensors import with their first use.

    Args:
        arch: as `load_compiler`.
    """
    with _device_known(arch):
        for name in OBSERVER:
            importlib.import_module(name)


def load_triton(arch: str = "", *, runs_programs: bool = True) -> None:
    """Load Triton where it is installed, and what its cache is keyed by.

    Args:
        arch: of the GPU that is compiled for; empty leaves the keys to who needs them.
        runs_programs: also what is asked of other programs (ptxas and `file`, their versions).
    """
    try:
        import triton  # noqa: F401 - loaded once, for every child
    except ImportError:
        return  # Triton candidates will say so themselves
    if not arch:
        return
    keys: list[tuple[str, str, tuple[int, ...]]] = [("triton.runtime.cache", "triton_key", ())]
    if runs_programs:
        keys += [
            ("triton.runtime.build", "platform_key", ()),
            ("triton.backends.nvidia.compiler", "get_ptxas_version", (_number(arch),)),
        ]
    for owner, name, given in keys:
        # Names and arguments differ from release to release; a child then finds out by itself.
        errors = (ImportError, AttributeError, TypeError, RuntimeError, OSError)
        with suppress(*errors, subprocess.SubprocessError):
            getattr(importlib.import_module(owner), name)(*given)


def touched() -> str:
    """Return why a fork of this process could not use a GPU any more; empty where it can."""
    import torch

    if _is_driver_initialised():
        return "the driver was asked for devices"
    child = os.fork()
    if child == 0:
        os._exit(int(torch.cuda._is_in_bad_fork()))
    _, status = os.waitpid(child, 0)
    return "torch calls its forks bad" if status else ""


@contextmanager
def _device_known(arch: str) -> Iterator[None]:
    """Let torch know the GPU's architecture, as it does where it compiles without one."""
    import torch._dynamo.device_interface as interface

    if not arch:
        yield
        return
    major, minor = divmod(_number(arch), 10)
    devices = interface.caching_worker_current_devices
    properties = interface.caching_worker_device_properties
    devices["cuda"] = 0
    properties["cuda"] = [SimpleNamespace(major=major, minor=minor)]
    try:
        yield
    finally:  # a child that has the device finds out the rest
        devices.pop("cuda", None)
        properties.pop("cuda", None)


def _number(arch: str) -> int:
    """Return 90 for `sm_90`."""
    return int("".join(each for each in arch if each.isdigit()))


def _is_driver_initialised() -> bool:
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError:
        return False
    context = ctypes.c_void_p()
    return bool(driver.cuCtxGetCurrent(ctypes.byref(context)) != _NOT_INITIALISED)
