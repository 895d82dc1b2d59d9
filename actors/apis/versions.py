"""A target with the versions of what its candidates run on, as they are installed on this host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from kopt.data.manifest import versions
from kopt.ports import Target

_CUDA = re.compile(r"^cuda\b.*=\s*['\"](?P<version>[\d.]+)['\"]", re.M)


def with_versions(target: Target) -> Target:
    """Return the target with names and versions for authors; what is absent is left out."""
    return replace(target, versions=tuple(_installed(target)))


def _installed(target: Target) -> Iterator[tuple[str, str]]:
    found = versions()
    cuda = _cuda_of_torch() if target.device == "cuda" else None
    if found["python"]:
        yield "Python", found["python"]
    if found["torch"]:
        yield "torch", found["torch"] + (f" (CUDA {cuda})" if cuda else "")
    if found["triton"] and "triton" in target.languages:
        yield "Triton", found["triton"]


def _cuda_of_torch() -> str | None:
    """Return the CUDA version that torch was built for, as its package says without being run."""
    with suppress(ImportError, OSError, ValueError):
        spec = find_spec("torch")
        if spec is not None and spec.origin is not None:
            text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
            match = _CUDA.search(text)
            return None if match is None else match["version"]
    return None
