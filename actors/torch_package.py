"""What the installed torch is, by its package's own word: importing it takes seconds."""

from __future__ import annotations

import functools
import runpy
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchPackage:
    """Torch as it lies on this host."""

    folder: Path
    version: str
    """With its local part (`2.13.0+cpu`)."""
    git_version: str
    cuda: str | None
    """Version of CUDA that it was built for; None where for none."""


@functools.cache
def torch_package() -> TorchPackage:
    """Return the installed torch; read once by each process.

    Raises:
        ImportError: torch is not installed, or says no version.
    """
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise ImportError("torch is not installed; install kopt with what it depends on")
    folder = Path(spec.origin).parent
    try:
        said = runpy.run_path(str(folder / "version.py"))
        version, git_version = str(said["__version__"]), str(said["git_version"])
    except (OSError, KeyError) as error:
        raise ImportError(f"torch in {folder} says no version: {error}") from error
    return TorchPackage(
        folder=folder, version=version, git_version=git_version, cuda=said.get("cuda")
    )
