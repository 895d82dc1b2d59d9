"""A target with the versions of what its candidates run on, as they are installed on this host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from kopt.actors.torch_package import torch_package
from kopt.data.manifest import versions
from kopt.ports import Target


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
    with suppress(ImportError):
        return torch_package().cuda
    return None
