"""Probes of software: Python, packages, compilers. Versions are read without importing."""

from __future__ import annotations

import re
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kopt.cli.probe import Probe, command_output, first_line

PACKAGES: tuple[tuple[str, tuple[int, int], tuple[int, int] | None], ...] = (
    ("torch", (2, 9), (2, 14)),
    ("ray", (2, 50), None),
    ("hydra-core", (1, 3), (1, 4)),
    ("omegaconf", (2, 3), (2, 4)),
    ("pydantic", (2, 7), None),
    ("pyarrow", (15, 0), None),
)
"""Distribution, least version, and the first that is too new; those of pyproject.toml."""

PAGE_MAKERS = ("jinja2", "plotly", "pygments")
"""What `kopt report` makes pages with."""

OPENMP_PROGRAM = """\
#include <omp.h>
extern "C" int threads() { int n = 0;
#pragma omp parallel
{
#pragma omp single
n = omp_get_num_threads();
}
return n; }
"""


def software_probes() -> list[Probe]:
    """Look for everything that is installed, in the order shown."""
    return [
        _python(),
        *(_package(name, least, below) for name, least, below in PACKAGES),
        _triton(),
        _report(),
        _compiler(),
        _tool(
            "nvcc",
            ["nvcc", "--version"],
            why="CUDA C++ candidates cannot be built",
            fix="install the CUDA toolkit and put its bin folder on PATH",
        ),
        _tool(
            "ninja",
            ["ninja", "--version"],
            why="candidates that use torch's load_inline cannot be built",
            fix="pip install ninja",
        ),
        _tool(
            "git",
            ["git", "--version"],
            why="changes in a KernelBench clone are not noticed",
            fix="install git",
        ),
    ]


def parsed_version(text: str) -> tuple[int, int]:
    """Return the first two numbers of a version (`2.13.0+cpu` gives (2, 13))."""
    numbers = [int(part) for part in re.findall(r"\d+", text)[:2]]
    return (numbers[0] if numbers else 0, numbers[1] if len(numbers) > 1 else 0)


def _python() -> Probe:
    found = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info >= (3, 11)
    return Probe(
        name="python", ok=ok, found=found, fix="" if ok else "use Python >= 3.11", needed=True
    )


def _package(name: str, least: tuple[int, int], below: tuple[int, int] | None) -> Probe:
    wanted = f"{name}>={_dotted(least)}" + ("" if below is None else f",<{_dotted(below)}")
    fix = f"pip install '{wanted}'"
    try:
        found = version(name)
    except PackageNotFoundError:
        return Probe(name=name, ok=False, found="not installed", fix=fix, needed=True)
    parsed = parsed_version(found)
    if parsed < least or (below is not None and parsed >= below):
        return Probe(name=name, ok=False, found=f"{found}, wants {wanted}", fix=fix, needed=True)
    return Probe(name=name, ok=True, found=found, needed=True)


def _triton() -> Probe:
    try:
        return Probe(name="triton", ok=True, found=version("triton"))
    except PackageNotFoundError:
        return Probe(
            name="triton",
            ok=False,
            found="not installed: no Triton candidates",
            fix="pip install 'triton>=3.5' (the CPU build of torch does not bring it)",
        )


def _report() -> Probe:
    missing = []
    for name in PAGE_MAKERS:
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return Probe(
            name="report pages",
            ok=False,
            found=f"{', '.join(missing)} not installed: no `kopt report`",
            fix="pip install 'kopt-search[report]' (in a clone: pip install -e '.[report]')",
        )
    return Probe(name="report pages", ok=True, found=", ".join(PAGE_MAKERS))


def _compiler() -> Probe:
    """Build a shared library with OpenMP: what every C++ candidate needs."""
    words = command_output(["g++", "--version"])
    fix = "install g++ with OpenMP (Debian, Ubuntu: apt install g++)"
    if words is None:
        return Probe(name="g++", ok=False, found="not found: no C++ candidates on a CPU", fix=fix)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text(OPENMP_PROGRAM)
        library = Path(folder) / "probe.so"
        command = ["g++", "-O2", "-fopenmp", "-shared", "-fPIC", str(source), "-o", str(library)]
        if command_output(command) is None:
            return Probe(
                name="g++",
                ok=False,
                found=f"{first_line(words)}: cannot build a library with OpenMP",
                fix=fix,
            )
    return Probe(name="g++", ok=True, found=f"{first_line(words)}, builds with OpenMP")


def _tool(name: str, command: list[str], *, why: str, fix: str) -> Probe:
    words = command_output(command)
    if words is None:
        return Probe(name=name, ok=False, found=f"not found: {why}", fix=fix)
    release = re.search(r"release [\d.]+", words)
    return Probe(name=name, ok=True, found=release[0] if release else first_line(words))


def _dotted(numbers: tuple[int, int]) -> str:
    return ".".join(map(str, numbers))
