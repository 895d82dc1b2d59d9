"""Probes of GPUs: whether there is one that torch can use, its driver, its compute capability."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from kopt.actors.devices.nvrtc import load_nvrtc
from kopt.cli.probe import Probe, command_output, first_line
from kopt.cli.probe_software import parsed_version

DRIVERS = {13: 580, 12: 525, 11: 450}
"""CUDA's major version to the least driver for Linux (NVIDIA's CUDA Compatibility)."""
LEAST_CAPABILITY = (8, 0)
"""Of TF32 and bfloat16, and of the instructions that our tools know: Ampere."""
NO_GPU = Probe(
    name="GPU",
    ok=False,
    found="nvidia-smi finds none: searches run on the CPU",
    fix="install NVIDIA's driver on a machine with a GPU (in a container: --gpus all)",
)


def gpu_probes() -> list[Probe]:
    """Look for GPUs, at the first one's driver and capability, and at what compiles for it."""
    gpu = gpu_probe()
    return [gpu, _driver(), _capability(), *([_nvrtc()] if gpu.ok else [])]


def gpu_probe() -> Probe:
    """Return the row of the GPUs; it is on where torch is a build that can use them."""
    words = _ask("name,memory.total")
    if not words:
        return NO_GPU
    found = f"{len(words.splitlines())} x {first_line(words)}"
    if _torch_version().endswith("+cpu"):
        return Probe(
            name="GPU",
            ok=False,
            found=f"{found}: torch is a build for CPUs",
            fix="install a CUDA build of torch",
        )
    return Probe(name="GPU", ok=True, found=found)


def least_driver(torch_version: str) -> int:
    """Return the least major version of the driver that a build of torch runs with.

    Args:
        torch_version: such as `2.11.0+cu130`; one that does not say its CUDA is taken for CUDA 12.
    """
    _, _, build = torch_version.partition("+cu")
    return DRIVERS.get(int(build[:2]) if build[:2].isdigit() else 12, min(DRIVERS.values()))


def _driver() -> Probe:
    words = first_line(_ask("driver_version"))
    if not words:
        return Probe(name="driver", ok=False, found="none is loaded", fix=NO_GPU.fix)
    least = least_driver(_torch_version())
    if parsed_version(words)[0] < least:
        fix = f"install driver {least} or later, or a build of torch for an older CUDA"
        found = f"{words}, torch {_torch_version()} wants {least}"
        return Probe(name="driver", ok=False, found=found, fix=fix)
    return Probe(name="driver", ok=True, found=words)


def _capability() -> Probe:
    name = "compute capability"
    words = first_line(_ask("compute_cap"))
    if not words:
        return Probe(name=name, ok=False, found="unknown: no GPU answers", fix=NO_GPU.fix)
    if parsed_version(words) < LEAST_CAPABILITY:
        least = ".".join(map(str, LEAST_CAPABILITY))
        fix = f"use a GPU of compute capability {least} or later (Ampere, Hopper, Blackwell)"
        return Probe(name=name, ok=False, found=f"{words}: no TF32, no bfloat16", fix=fix)
    return Probe(name=name, ok=True, found=words)


def _nvrtc() -> Probe:
    """Return the row of the compiler of what kopt queues between timed calls."""
    _, _, build = _torch_version().partition("+cu")
    majors = [build[:2]] if build[:2].isdigit() else [str(major) for major in DRIVERS]
    packages = Path(str(distribution("torch").locate_file("")))
    for major in majors:
        with suppress(RuntimeError):
            load_nvrtc(major, packages=packages)
            return Probe(name="NVRTC", ok=True, found=f"of CUDA {major}")
    fix = "install the package nvidia-cuda-nvrtc, or put its folder into LD_LIBRARY_PATH"
    return Probe(name="NVRTC", ok=False, found="none: nothing can be timed on the GPU", fix=fix)


def _ask(columns: str) -> str:
    words = command_output(["nvidia-smi", f"--query-gpu={columns}", "--format=csv,noheader"])
    return words or ""


def _torch_version() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return ""
