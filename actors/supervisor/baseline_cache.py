"""Times of a problem's baselines, kept from one session to the next under a fingerprint.

They only choose which baselines are worth a process of their own, and report the others: what a
candidate is raced against is timed in every race. An entry is of one problem, mode, ladder, device,
software, protocol and number of threads; what is damaged, or of something else, is measured again.
Failures are not kept: what failed for want of a compiler is tried anew. Children see this folder
nowhere among those they may write (confinement.py).
"""

from __future__ import annotations

import json
import logging
import platform
from importlib import metadata
from pathlib import Path
from typing import Annotated

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kopt.actors.cache.kinds import open_store
from kopt.actors.supervisor.settings import Bench
from kopt.identity import content_id
from kopt.problem import Problem
from kopt.timing import Baseline
from kopt.version import __version__

_LOG = logging.getLogger(__name__)
MEASURED_BY = 1
"""How baselines are measured (baselines.py); a change of it makes every entry another's."""
_DRIVER = Path("/proc/driver/nvidia/version")

TimeUs = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]


class _Entry(BaseModel):
    """What lies in the store."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fingerprint: dict[str, str]
    times_us: dict[Baseline, TimeUs]


class BaselineCache:
    """The entry of one problem, as one supervisor measures it."""

    def __init__(self, bench: Bench, problem: Problem) -> None:
        """Look for nothing yet.

        Args:
            bench: device, configuration and cache folder.
            problem: whose baselines they are.
        """
        self._store = open_store(bench.cache_dir, "baseline")
        self._name = problem.name
        self._fingerprint = fingerprint(bench, problem)
        self._key = content_id("baseline", MEASURED_BY, self._fingerprint)

    def load(self) -> dict[Baseline, float]:
        """Return the times that are kept, in microseconds; none where there is no sound entry."""
        value = self._store.get(self._key)
        if value is None:
            return {}
        try:
            entry = _Entry.model_validate_json(value)
        except ValidationError as error:
            why = error.errors(include_url=False)[0]["msg"]
            self.forget(f"what is kept is damaged ({why})")
            return {}
        if entry.fingerprint != self._fingerprint:
            self.forget("what is kept is of something else")
            return {}
        return entry.times_us

    def keep(self, times_us: dict[Baseline, float]) -> None:
        """Keep times, in place of those that were kept; a store that cannot be written is said."""
        entry = {"fingerprint": self._fingerprint, "times_us": times_us}
        try:
            self._drop()
            self._store.put(self._key, json.dumps(entry).encode())
        except OSError as error:
            _LOG.warning("baselines of %s are not kept: %s", self._name, error)

    def forget(self, why: str) -> None:
        """Remove the entry, saying why, so that whoever comes next measures again."""
        _LOG.warning("baselines of %s are measured again: %s", self._name, why)
        try:
            self._drop()
        except OSError as error:
            _LOG.warning("baselines of %s stay as they were kept: %s", self._name, error)

    def _drop(self) -> None:
        with self._store.entry(self._key) as entry:
            self._store.drop(entry)


def fingerprint(bench: Bench, problem: Problem) -> dict[str, str]:
    """Return everything that the time of a baseline depends on, in words."""
    config = bench.config
    return {
        "problem": problem.problem_id,
        "module_mode": config.module_mode,
        "ladder": config.ladder,
        "protocol": config.timing.protocol,
        "block_ms": f"{config.timing.block_ms:g}",
        "device": f"{bench.device} {bench.device_name}",
        "threads": str(bench.num_threads),
        "kopt": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "triton": _version("triton"),
        "cuda": str(torch.version.cuda),
        "driver": _driver() if bench.device == "cuda" else "",
    }


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _driver() -> str:
    try:
        return _DRIVER.read_text(encoding="utf-8").partition("\n")[0].strip()
    except OSError:
        return ""
