"""Weights & Biases, online or to files for `wandb sync`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from kopt.actors.trackers.config import WandbConfig
from kopt.actors.trackers.table import TRACKERS
from kopt.errors import ConfigError
from kopt.tracker import TrackedRun


class WeightsAndBiases:
    """One run of a project."""

    def __init__(self, config: WandbConfig, run: TrackedRun) -> None:
        """Begin the run; a resumed one is gone on with where the server knows it.

        Raises:
            ConfigError: the package is not installed, or there is no key.
            Whatever it raises: no network.
        """
        try:
            wandb = import_module("wandb")
        except ImportError:
            raise ConfigError(
                "Weights & Biases is not installed; pip install 'kopt-search[wandb]'"
            ) from None
        mode = config.mode or os.environ.get("WANDB_MODE") or "online"
        if mode == "online" and not _has_key(wandb):  # it would ask at the run's terminal
            raise ConfigError(
                "no key; set WANDB_API_KEY, or `wandb login` first, or tracker.mode=offline"
            )
        self._run = wandb.init(
            project=config.project,
            entity=config.entity,
            name=run.name,
            dir=str(run.folder),
            config=dict(run.config),
            mode=config.mode,
            reinit="create_new",  # the jobs of a multirun are runs side by side in one process
            settings=wandb.Settings(console="off", silent=True),
        )
        # Points may be sent for one step twice; the axis is a number of ours, not wandb's counter.
        self._run.define_metric("candidates")
        self._run.define_metric("*", step_metric="candidates")

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        """Add a point to each curve."""
        self._run.log({**values, "candidates": float(step)})

    def close(self) -> None:
        """End the run, and send what is held."""
        self._run.finish()


TRACKERS.register("wandb")(WeightsAndBiases)


def _has_key(wandb: Any) -> bool:  # noqa: ANN401 - a module that need not be installed
    """Whether the package knows a key, without asking the user."""
    try:
        return bool(wandb.login(prompt=False))
    except TypeError:  # versions whose login has no such argument
        return wandb.api.api_key is not None
