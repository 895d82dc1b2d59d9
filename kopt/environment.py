"""The environment variables that kopt itself reads, in one place."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "KOPT_CACHE_DIR"
KERNELBENCH_VARIABLE = "KOPT_KERNELBENCH"
SANDBOX_VARIABLE = "KOPT_SANDBOX"


def cache_dir() -> Path:
    """Return where builds and baselines are cached: KOPT_CACHE_DIR, or ~/.cache/kopt."""
    stated = os.environ.get(CACHE_VARIABLE)
    return Path(stated) if stated else Path.home() / ".cache" / "kopt"


def kernelbench_clone() -> str | None:
    """Return KOPT_KERNELBENCH, the path of a local clone; None where it is unset or empty."""
    return os.environ.get(KERNELBENCH_VARIABLE) or None


def sandbox_levels() -> str | None:
    """Return KOPT_SANDBOX, the levels of the sandbox to try; None where it is unset or empty."""
    return os.environ.get(SANDBOX_VARIABLE) or None
