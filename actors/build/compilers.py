"""What builds here depend on: compilers, torch, the processor, the GPUs, and our own headers."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from kopt.actors.build.headers import NATIVE
from kopt.actors.torch_package import torch_package

ASK_S = 20.0
"""For a compiler or a driver to say what it is."""
_OURS = ("headers.py", "light_compiler.py", "light_errors.py", "provision.py", "words.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilers:
    """The compilers that torch's extensions are built with."""

    cxx: str | None
    """Path of the C++ compiler; None where there is none."""
    nvcc: str | None
    """Path of nvcc; None without it, or where torch cannot use it."""
    archs: str
    """For TORCH_CUDA_ARCH_LIST: the GPUs here, and nothing that none of them runs. May be empty."""
    fingerprint: str
    """Differs wherever a build may differ, but for the processor."""


@functools.cache
def find_compilers() -> Compilers:
    """Return the compilers of this node; asked once by each process."""
    package = torch_package()
    cxx = shutil.which("c++")
    nvcc = None
    if package.cuda is not None:
        from torch.utils.cpp_extension import CUDA_HOME

        nvcc = None if CUDA_HOME is None else shutil.which("nvcc", path=f"{CUDA_HOME}/bin")
    archs = os.environ.get("TORCH_CUDA_ARCH_LIST") or (_archs_of_gpus() if nvcc else "")
    parts = [
        package.version,
        package.git_version,
        str(package.folder),
        sys.version,
        str(sysconfig.get_config_var("EXT_SUFFIX")),
        archs,
        *(f"{path}\0{_said(path, '--version')}" for path in (cxx, nvcc) if path is not None),
        *(f"{path.name}\0{path.read_text('utf-8')}" for path in _own_files()),
    ]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return Compilers(cxx=cxx, nvcc=nvcc, archs=archs, fingerprint=digest[:32])


@functools.cache
def processor() -> str:
    """Return what `-march=native` depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return os.uname().machine
    names = ("model name", "flags", "Features")
    seen = {line.partition(":")[0].strip(): line for line in reversed(lines)}
    return "\n".join(seen[name] for name in names if name in seen)


def build_key(source: str, *, language: str) -> str:
    """Return the name of a candidate's build: another one wherever the result may differ.

    The flags are in the source, which is the whole Python file.
    """
    parts = ("build 1", language, find_compilers().fingerprint, processor(), source)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()


def _own_files() -> list[Path]:
    native = [path for path in NATIVE.rglob("*") if path.suffix in (".h", ".cpp")]
    return sorted([*native, *(Path(__file__).parent / name for name in _OURS)])


def _archs_of_gpus() -> str:
    """Return the compute capabilities of the GPUs, which this process may not be allowed to use."""
    said = _said("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
    return ";".join(sorted({line.strip() for line in said.splitlines() if line.strip()}))


def _said(*command: str) -> str:
    """Return what a command prints; nothing where it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=ASK_S, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
