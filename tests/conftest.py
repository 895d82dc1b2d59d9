"""What every test folder shares: who is skipped, and why."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none; torch is asked only where such a test is run."""
    wanting = [item for item in items if item.get_closest_marker("gpu") is not None]
    if not wanting:
        return
    reason = _why_no_gpu()
    if reason is None:
        return
    for item in wanting:
        item.add_marker(pytest.mark.skip(reason=reason))


def _why_no_gpu() -> str | None:
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    return None if torch.cuda.is_available() else "torch sees no CUDA device"
