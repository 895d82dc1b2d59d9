"""Triton without a device: launches that compile and do not run, several at a time.

A launch makes the same key from its arguments as it would on the device, so what is compiled here
is what the device looks up; it is Triton's own code that makes the key, compiles and writes the
cache. The C sources that Triton builds to launch kernels are built as well, by Triton's own code,
and not loaded: they need the driver's library only when they run. Read against Triton 3.6 and 3.9.

For a process that ends afterwards: what it replaces in Triton stays replaced.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver as nvidia
from triton.runtime import build as triton_build
from triton.runtime import driver as triton_driver
from triton.runtime._async_compile import AsyncCompileMode
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from kopt.actors.build.gpu_facts import GpuFacts

REGISTERS, THREADS = 32, 1024
"""Said of a kernel to whoever asks after `warmup`: only its grid may depend on that."""


class _Unloaded:
    """A module of C code that was built and not loaded: whatever is in it can be called."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


class _Utils(_Unloaded):
    """What Triton asks the driver's own library for."""

    def __init__(self, facts: GpuFacts) -> None:
        self._properties = {
            "max_shared_mem": facts.block_shared_bytes,
            "max_num_regs": facts.sm_registers,
            "multiprocessor_count": facts.num_sms,
            "warpSize": 32,
        }

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Return the figures that Triton's users plan their grids by."""
        del device
        return dict(self._properties)

    def load_binary(self, *args: object) -> tuple[None, None, int, int, int]:
        """Load nothing: (module, function, registers, spills, threads)."""
        del args
        return None, None, REGISTERS, 0, THREADS


class StandInDriver:
    """Triton's driver for a GPU that is not there."""

    def __init__(self, facts: GpuFacts) -> None:
        """Answer for this GPU."""
        self._facts = facts
        self.utils = _Utils(facts)
        self.launcher_cls = nvidia.CudaLauncher

    def get_current_target(self) -> GPUTarget:
        """Return what kernels are compiled for."""
        return GPUTarget("cuda", self._facts.major * 10 + self._facts.minor, 32)

    def get_active_torch_device(self) -> torch.device:
        """Return where tensors are."""
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:  # noqa: ANN401 - a module
        """Return torch.cuda."""
        return torch.cuda

    def get_device_capability(self, device: object = None) -> tuple[int, int]:
        """Return (9, 0) for sm_90."""
        del device
        return self._facts.major, self._facts.minor

    def get_current_device(self) -> int:
        """Return its number."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is but one."""

    def get_current_stream(self, device: object = None) -> int:
        """Return the default stream."""
        del device
        return 0

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Return the C type of a Triton type."""
        return str(nvidia.ty_to_cpp(ty))

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Return what autotuners time configurations with."""
        return run_once

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """Return what would flush the cache."""
        return torch.empty(1, dtype=torch.int, device="cuda:0")

    def clear_cache(self, cache: torch.Tensor) -> None:
        """There is none."""


def run_once(call: Callable[[], object], *args: object, **kwargs: object) -> list[float]:
    """Make a call, which compiles it; the times (three quantiles) are all alike."""
    del args, kwargs
    call()
    return [1.0, 1.0, 1.0]


class Compiler(ThreadPoolExecutor):
    """Compiles what is launched in its scope; most of the compiler holds no interpreter lock."""

    def __init__(self, facts: GpuFacts, *, num_workers: int) -> None:
        """Stand in for the driver, from now on."""
        super().__init__(max_workers=num_workers)
        self.compiled: list[str] = []
        """Triton's keys of kernels that are in the cache now."""
        self.failed: list[str] = []
        """What was said of kernels that do not compile."""
        self._lock = threading.Lock()
        self._mode = AsyncCompileMode(self, ignore_errors=True)
        self._folder = tempfile.mkdtemp()
        triton_driver.set_active(StandInDriver(facts))
        _stand_in(Path(self._folder))

    def __enter__(self) -> Self:
        """Compile what is launched from now on, and what every launch needs."""
        super().submit(self._build, nvidia.CudaUtils)
        self._mode.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait until all is compiled."""
        try:
            self._mode.__exit__(kind, error, trace)
        finally:
            super().__exit__(kind, error, trace)
            shutil.rmtree(self._folder, ignore_errors=True)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - the executor's contract
        """Take a kernel that was launched (Triton's AsyncCompileMode calls this)."""
        return super().submit(self._compile, fn, *args, **kwargs)

    def _compile(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - Triton's kernel
        try:
            kernel = fn(*args, **kwargs)
        except BaseException as error:
            with self._lock:
                self.failed.append(f"{type(error).__name__}: {error}")
            raise
        with self._lock:
            self.compiled.append(str(kernel.hash))
        self._build(lambda: nvidia.CudaLauncher(kernel.src, kernel.metadata))
        return kernel

    def _build(self, make: Callable[[], object]) -> None:
        """Build C sources of Triton's; without a C compiler the device's own lane says so."""
        try:
            make()
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            with self._lock:
                self.failed.append(f"{type(error).__name__}: {error}")


def _stand_in(folder: Path) -> None:
    """Replace what runs kernels, times them, or loads code for them."""
    stock: Callable[..., Any] = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:  # noqa: ANN401 - Triton's
        kernel = stock(self, *args, grid=grid, warmup=True, **kwargs)
        return kernel.result() if warmup and hasattr(kernel, "result") else kernel

    jit: Any = JITFunction
    jit.run = run
    autotuner: Any = Autotuner
    autotuner.do_bench = property(lambda self: run_once)
    autotuner.check_disk_cache = _untimed
    build: Any = triton_build
    build._load_module_from_path = lambda name, path: _Unloaded()
    libraries = _library_folders(folder)
    driver: Any = nvidia
    driver.library_dirs = lambda: libraries


def _untimed(
    self: Any,  # noqa: ANN401 - Triton's autotuner
    key: object,
    configs: Sequence[object],
    benchmark: Callable[[], object],
) -> bool:
    """Time as if nothing were kept: times from here would choose for the device."""
    del self, key, configs
    benchmark()
    return False


def _library_folders(folder: Path) -> list[str]:
    """Return where the linker looks for the CUDA driver's library: an empty one will do."""
    try:
        return list(nvidia.library_dirs())
    except (AssertionError, OSError, subprocess.SubprocessError):
        pass
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is not None:
        words = [compiler, "-shared", "-x", "c", "/dev/null", "-o", str(folder / "libcuda.so.1")]
        subprocess.run(words, capture_output=True, check=False)
    return [nvidia.libdevice_dir, str(folder)]
