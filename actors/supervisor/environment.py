"""The environment that children see: what toolchains need, and no keys."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kopt.actors.build.inductor import VECTORS_VARIABLE, inductor_environment
from kopt.actors.build.toolchain import compiler_environment

_PASSED_ON = (
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "OPENBLAS_CORETYPE",
    "TORCH_CUDA_ARCH_LIST",
    VECTORS_VARIABLE,
    "TZ",
)

USER = "kopt"
KEPT_MEMORY_BYTES = 1 << 30
"""What is freed in a child stays with it up to this: a large output that is mapped anew for every
call costs more in page faults than many a kernel, and hides what the kernel itself gains."""
SPIN_COUNT = 10_000
"""Turns that an idle OpenMP thread spins before it sleeps, some tens of microseconds: a child that
waits must not take the cores of the one that is timed."""


def child_environment(
    *, scratch: Path, num_threads: int, cache_dir: Path, build_dir: Path | None = None
) -> dict[str, str]:
    """Return the whole environment of a child.

    Args:
        scratch: its private folder; home and temporary files go there.
        num_threads: of OpenMP and of torch.
        cache_dir: kopt's cache; the reference's compiled baselines are kept below it.
        build_dir: the candidate's own folder of builds; None for the reference.
    """
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= {
        "PATH": os.pathsep.join(
            [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        ),
        "HOME": str(scratch),
        "USER": USER,  # for whoever asks who they are: the user may be no one's
        "LOGNAME": USER,
        "TMPDIR": str(scratch),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": str(num_threads),
        "MKL_NUM_THREADS": str(num_threads),
        "MALLOC_MMAP_THRESHOLD_": str(KEPT_MEMORY_BYTES),
        "MALLOC_TRIM_THRESHOLD_": str(KEPT_MEMORY_BYTES),
        "GOMP_SPINCOUNT": str(SPIN_COUNT),
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # asking for devices must not spoil the fork
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TRITON_DEFAULT_FP_FUSION": "1",
        "TRITON_HOME": str(scratch),  # else the home that triton saw when the zygote imported it
    }
    if build_dir is None:
        compiled = cache_dir / "inductor"
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(compiled)
        environment["TRITON_CACHE_DIR"] = str(compiled / "triton")
    else:
        environment |= {
            "KOPT_BUILD_DIR": str(build_dir),
            "TORCH_EXTENSIONS_DIR": str(build_dir / "torch_extensions"),
            "TRITON_CACHE_DIR": str(build_dir / "triton"),
            "TORCHINDUCTOR_CACHE_DIR": str(build_dir / "inductor"),
            **compiler_environment(cache_dir),
        }
    return environment | inductor_environment(environment)
