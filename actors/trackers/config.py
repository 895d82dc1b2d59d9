"""The tracker's section of the configuration. Imports pydantic and nothing heavier."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from kopt.plugin_kind import PluginKind
from kopt.section import Section, kind_of


class NoTrackerConfig(Section):
    """Nobody is told; the journal has it all."""

    kind: Literal["none"] = "none"


class TensorBoardConfig(Section):
    """Event files that `tensorboard --logdir` shows (`pip install 'kopt-search[tensorboard]'`)."""

    kind: Literal["tensorboard"] = "tensorboard"
    folder: str | None = None
    """Where event files lie, in a folder named after the run; null: `tensorboard/` in the run
    folder."""


class WandbConfig(Section):
    """Weights & Biases (`pip install 'kopt-search[wandb]'`).

    The key is the environment's WANDB_API_KEY, or that of `wandb login`.
    """

    kind: Literal["wandb"] = "wandb"
    project: str = Field(default="kopt", min_length=1)
    entity: str | None = None
    """User or team; null: the account's own."""
    mode: Literal["online", "offline"] | None = None
    """`offline` writes below the run folder for `wandb sync`, and needs no network; null: as the
    environment's WANDB_MODE says, else online."""


class PluginTrackerConfig(Section):
    """A tracker of another package (entry-point group `kopt.trackers`) or of a file of yours."""

    kind: PluginKind
    """`package/name`, the name of the entry point, or `path/to/mine.py:NAME`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Its own settings; its factory checks them."""


def _section(value: object) -> object:
    """Return a bare word as the section of that kind: `kopt resume RUN tracker=none`."""
    return {"kind": value} if isinstance(value, str) else value


TrackerConfig = Annotated[
    Annotated[NoTrackerConfig, Tag("none")]
    | Annotated[TensorBoardConfig, Tag("tensorboard")]
    | Annotated[WandbConfig, Tag("wandb")]
    | Annotated[PluginTrackerConfig, Tag("plugin")],
    Discriminator(kind_of),
    BeforeValidator(_section),
]
"""Any tracker's section."""
