"""What every test folder shares: who is skipped, and why; who gets a second try, and who never."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.environment import CACHE_VARIABLE

TIMED_BY_THE_HOST = ("alone", "ray", "slow")
"""Marks of tests that start processes or time code: a busy host may disturb one."""
COUNTED = "leaves_nothing"
"""Fixture that counts what an evaluator holds; a count may be disturbed, a verdict may not."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what cannot run here; give a second try, which is reported, to what a host may disturb.

    A `bar` (no attack accepted, no honest kernel refused) has to hold every time.
    """
    _skip_without_gpu(items)
    if not config.pluginmanager.hasplugin("rerunfailures"):
        return  # a GPU host that has pytest alone
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if "bar" not in marks and marks.intersection(TIMED_BY_THE_HOST):
            item.add_marker(pytest.mark.flaky(reruns=1))
        elif COUNTED in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=["Footprint"]))


@pytest.fixture(scope="session")
def new_cache(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Returns a function: the folder of a cache that is empty but for this run's toolchains.

    To set one up takes half a minute, and more with nvcc: whoever is first does it for all.
    """

    def make() -> Path:
        made = tmp_path_factory.mktemp("cache")
        of_run = os.environ.get(CACHE_VARIABLE)
        if of_run:
            toolchains = Path(of_run) / "toolchains"
            toolchains.mkdir(parents=True, exist_ok=True)
            (made / "toolchains").symlink_to(toolchains.absolute())
        return made

    return make


def pytest_collection_finish() -> None:
    """Put what imports left out of the collector's sight: tests that collect are quick then."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let the interpreter end as ever."""
    gc.unfreeze()


def _skip_without_gpu(items: list[pytest.Item]) -> None:
    """Torch is asked only where a test that needs a GPU was collected."""
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
