"""TensorBoard: event files, by torch's own writer, or by tensorboardX."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from kopt.actors.trackers.config import TensorBoardConfig
from kopt.actors.trackers.table import TRACKERS
from kopt.errors import ConfigError
from kopt.tracker import TrackedRun

WRITERS = ("torch.utils.tensorboard", "tensorboardX")


class TensorBoard:
    """One run's event files."""

    def __init__(self, config: TensorBoardConfig, run: TrackedRun) -> None:
        """Open the files.

        Raises:
            ConfigError: neither package is installed.
            OSError: they cannot be written.
        """
        own = Path(config.folder).expanduser() / run.name if config.folder else None
        self._writer = _writer_class()(log_dir=str(own or run.folder / "tensorboard"))

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        """Add a point to each curve, and have it on disk."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        """Close the files."""
        self._writer.close()


TRACKERS.register("tensorboard")(TensorBoard)


def _writer_class() -> Any:  # noqa: ANN401 - a class of whichever package is installed
    for name in WRITERS:
        try:
            return import_module(name).SummaryWriter
        except ImportError:
            continue
    raise ConfigError(
        "TensorBoard is not installed; pip install 'kopt-search[tensorboard]', or tensorboardX"
    )
