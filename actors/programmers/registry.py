"""The table of programmers, and what each is made with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopt.actors.config import ClusterConfig, EvaluateConfig
from kopt.actors.programmers.config import ProgrammerConfig
from kopt.ports import Programmer
from kopt.registry import Registry

if TYPE_CHECKING:  # a programmer that asks over HTTP needs neither Ray nor torch
    from kopt.actors.cluster import Cluster
    from kopt.actors.quiet import Quiet


def _drop(figures: Mapping[str, Any]) -> None:
    del figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """What a programmer may need of the fleet it writes for."""

    cluster: Cluster
    cluster_config: ClusterConfig
    evaluate: EvaluateConfig
    quiet: Quiet
    """Held while a CPU is timed: whoever computes on this host waits for it."""
    run_dir: Path
    arm: str
    """Name of the fleet's arm."""
    warn: Callable[[str], None]
    """Shows one line to the user; for what is counted and does not stop the search."""
    keep_figures: Callable[[Mapping[str, Any]], None] = _drop
    """Keeps figures of the programmer's own in the run's manifest."""


PROGRAMMERS: Registry[Programmer] = Registry("programmer", entry_point_group="kopt.programmers")
"""Factories are called with (config section, Workplace)."""

MODULES = {"mailbox": "postbox"}
"""Kinds whose module has another name: the standard library has this one."""


def create_programmer(config: ProgrammerConfig, workplace: Workplace) -> Programmer:
    """Return the programmer of a section, ready to write.

    Raises:
        ConfigError: no programmer of that kind, or it cannot be set up as the section says.
    """
    # Each kind is imported when it is asked for: a run loads no client that it does not use.
    if "/" not in config.kind:
        import_module(f"kopt.actors.programmers.{MODULES.get(config.kind, config.kind)}")
    return PROGRAMMERS.create(config.kind, config, workplace)
