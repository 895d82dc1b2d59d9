"""The table of trackers. A kind's module is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from kopt.actors.trackers.config import TrackerConfig
from kopt.registry import Registry
from kopt.tracker import TrackedRun, Tracker

TRACKERS: Registry[Tracker] = Registry("tracker", entry_point_group="kopt.trackers")
"""Factories are called with (config section, TrackedRun); they may raise what they like."""

_MODULES = {"tensorboard": "tensorboard_sink", "wandb": "wandb_sink"}


def open_tracker(config: TrackerConfig, run: TrackedRun) -> Tracker:
    """Return the tracker of a section, ready to be told of the run.

    Raises:
        ConfigError: no tracker of that kind, or its package is not installed.
        Whatever the tracker's package raises: no network, no key, a full disk.
    """
    if config.kind in _MODULES:
        import_module(f"kopt.actors.trackers.{_MODULES[config.kind]}")
    return TRACKERS.create(config.kind, config, run)
