"""Code of the candidate's own in a process: binaries that are mapped and belong to nobody else.

Without any, a module is Python and what others compiled, however long it takes between torch's
operations.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch

_COMPILED_BY_TORCH = ("inductor", "triton")
"""Folders of a candidate's builds in which torch.compile and Triton keep theirs."""
_SYSTEM = ("/usr/", "/lib", "/opt/", "/dev/nvidia", "/dev/zero", "[")
# As they were before any candidate was imported.
_INSTALLED = tuple(
    str(Path(path).resolve()) + os.sep
    for path in (sys.prefix, sys.base_prefix, sys.exec_prefix, Path(torch.__file__).parent)
)
_ON_PATH = tuple(str(Path(path).resolve()) + os.sep for path in sys.path if path)


def own_binaries(*, build_dir: str | None) -> list[str]:
    """Return the paths of binaries that are mapped here and are the candidate's.

    Args:
        build_dir: its folder of builds; None where it has none.

    Raises:
        OSError: the host does not say what is mapped.
    """
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return sorted({path for path in _executable(maps) if _is_own(path, build_dir=build_dir)})


def _executable(maps: Iterable[str]) -> Iterator[str]:
    for line in maps:
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and "x" in fields[1]:
            yield fields[5].strip()


def _is_own(path: str, *, build_dir: str | None) -> bool:
    if build_dir is not None and path.startswith(build_dir + os.sep):
        return path[len(build_dir) + 1 :].split(os.sep)[0] not in _COMPILED_BY_TORCH
    return not path.startswith((*_SYSTEM, *_INSTALLED, *_ON_PATH))
