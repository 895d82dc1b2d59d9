"""A probe of a shared-memory layout: `tile_to_shape` of an atom, compiled and run on this host.

KernelPro §3.2.4: shapes that an atom does not divide are most of CuTe's compile errors. CuTe's
layouts are host code, so that a C++ compiler and CUDA's headers do (2.5 s of a CPU); nvcc does
where the headers are with it only.

What the model gives is checked to be the name of a type and numbers before it is compiled: a type
can run nothing by itself. The program is run with an empty environment and little of everything.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kopt.actors.cutlass.checkout import Refused
from kopt.actors.evidence.command import run_command

COMPILE_S = 90.0
RUN_S = 5.0
MAX_MEMORY_KIB = 6 << 20
"""Of the compiler: templates without an end take all there is."""
MAX_WORDS = 3_000
MAX_EXTENT = 1 << 20
MAX_RANK = 5
_TYPE = re.compile(r"[A-Za-z_][\w:]*(?:\s*<[\w:<>,\s]*>)?", re.ASCII)
_BAD = re.compile(r"\bstd\b|__|\b(?:decltype|sizeof|operator|typename|template|asm|new|delete)\b")
_ELEMENT = re.compile(r"[A-Za-z_][\w:]*", re.ASCII)
_TEMPLATE = """#include <cute/tensor.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#if __has_include(<cute/atom/mma_traits_sm100.hpp>)
#include <cute/atom/mma_traits_sm100.hpp>
#endif
#include <cstdio>
using namespace cute;
using Element = {element};
using Block = {atom};
int main() {{
  auto layout = tile_to_shape(Block{{}}, make_shape({shape}));
  std::printf("layout: ");
  print(layout);
  std::printf("\\nblock: ");
  print(shape(Block{{}}));
  std::printf("\\nelements: %lld\\nbytes: %lld\\n", (long long)cosize(layout),
              (long long)cosize(layout) * (long long)sizeof_bits<Element>::value / 8);
}}
"""
_ERROR = re.compile(r"^(?P<where>[^\n]*?):\s*(?:fatal )?error:\s*(?P<what>[^\n]*)$", re.MULTILINE)


def probe_source(*, layout_atom: str, shape: Sequence[int], element: str) -> str:
    """Return the probe's C++.

    Args:
        layout_atom: a type, such as `GMMA::Layout_K_SW128_Atom<half_t>`.
        shape: extents, positive.
        element: the type of one element, for bytes.

    Raises:
        Refused: one of them is something else.
    """
    if not _TYPE.fullmatch(layout_atom) or _BAD.search(layout_atom) or len(layout_atom) > 300:
        raise Refused(
            "arguments",
            "layout_atom must be the name of a layout's type, such as "
            "GMMA::Layout_K_SW128_Atom<half_t> or Layout<Shape<_8,_64>,Stride<_64,_1>>.",
        )
    if not _ELEMENT.fullmatch(element) or _BAD.search(element) or len(element) > 60:
        raise Refused("arguments", "element must be the name of a type, such as half_t or float.")
    if not 1 <= len(shape) <= MAX_RANK or not all(1 <= each <= MAX_EXTENT for each in shape):
        raise Refused(
            "arguments", f"shape must be 1 to {MAX_RANK} numbers from 1 to {MAX_EXTENT:,}."
        )
    extents = ", ".join(f"Int<{each}>{{}}" for each in shape)
    return _TEMPLATE.format(element=element, atom=layout_atom, shape=extents)


def host_compiler() -> tuple[str, ...] | None:
    """Return the words of a command that compiles CuTe's host code; None where there is none."""
    toolkit = _toolkit()
    for name in ("g++", "c++", "clang++"):
        cxx = shutil.which(name)
        if cxx is not None and toolkit is not None:
            folders = [each for each in (toolkit, toolkit / "cccl") if each.is_dir()]
            return (
                cxx,
                "-w",
                "-O0",
                *(word for each in folders for word in ("-isystem", f"{each}")),
            )
    nvcc = _nvcc()
    return None if nvcc is None else (nvcc, "-w", "-O0", "-x", "c++")


def check_smem_layout(
    include: Path, *, layout_atom: str, shape: Sequence[int], element: str
) -> str:
    """Return what the layout is, or the compiler's reason why it is none.

    Args:
        include: of CUTLASS.
        layout_atom: the type of the block that is tiled.
        shape: of the tile in shared memory.
        element: type of one element.

    Raises:
        Refused: the arguments are something else, there is no compiler here, or it took too long.
    """
    source = probe_source(layout_atom=layout_atom, shape=shape, element=element)
    compiler = host_compiler()
    if compiler is None:
        raise Refused(
            "no compiler",
            "This host has no compiler with CUDA's headers (nvcc): the layout is not checked.",
        )
    with tempfile.TemporaryDirectory(prefix="kopt-probe-") as scratch:
        folder = Path(scratch)
        (folder / "probe.cpp").write_text(source, encoding="utf-8")
        words = [*compiler, "-std=c++17", f"-I{include}", "probe.cpp", "-o", "probe"]
        built = _limited(words, folder=folder, timeout_s=COMPILE_S, memory_kib=MAX_MEMORY_KIB)
        if built is None:
            raise Refused("time", f"The compiler took more than {COMPILE_S:.0f} s: not checked.")
        code, said = built
        if code != 0:
            return f"It does not compile: {_reason(said, include=include)}"
        ran = _limited(["./probe"], folder=folder, timeout_s=RUN_S, memory_kib=1 << 20)
        if ran is None or ran[0] != 0:
            raise Refused("run", "It compiles, but the probe did not end well: not checked.")
        return f"It compiles.\n{ran[1][:MAX_WORDS].strip()}"


def _limited(
    words: Sequence[str], *, folder: Path, timeout_s: float, memory_kib: int
) -> tuple[int, str] | None:
    """Run a command with bounds; None where it did not end in time."""
    limits = f'ulimit -v {memory_kib}; ulimit -c 0; ulimit -f 1048576; exec "$@"'
    environment = {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": str(folder), "LC_ALL": "C"}
    done = run_command(
        ["/bin/sh", "-c", limits, "sh", *words],
        timeout_s=timeout_s,
        environment=environment,
        folder=folder,
    )
    return None if done.returncode is None else (done.returncode, done.output)


def _reason(said: str, *, include: Path) -> str:
    """The first errors, without what this host's folders are called."""
    errors = [
        f"{match['what'].strip()} ({_short(match['where'], include=include)})"
        for match in _ERROR.finditer(said)
    ]
    text = "\n".join(errors[:4]) or said.strip()[-MAX_WORDS:] or "no word from the compiler"
    return text.replace(f"{include}/", "")[:MAX_WORDS]


def _short(where: str, *, include: Path) -> str:
    return where.replace(f"{include}/", "").replace("probe.cpp", "the probe")


def _nvcc() -> str | None:
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    return shutil.which("nvcc") or shutil.which("nvcc", path=f"{home}/bin")


def _toolkit() -> Path | None:
    """Return CUDA's include folder, with the standard library that CUTLASS asks for."""
    nvcc = _nvcc()
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    if nvcc is not None:
        homes.append(str(Path(nvcc).resolve().parent.parent))
    for home in homes:
        include = Path(home or "", "include")
        if (
            home
            and (include / "vector_types.h").is_file()
            and any((include / each / "cuda/std/utility").is_file() for each in ("", "cccl"))
        ):
            return include
    return None
