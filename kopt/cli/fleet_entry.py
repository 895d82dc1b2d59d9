"""A job of a multirun, as it is started or gone on with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kopt.config import RunConfig
from kopt.data.rundir import RunDir
from kopt.problem import Problem

if TYPE_CHECKING:
    from kopt.cli.compiled import TakenModel


class FleetEntry(NamedTuple):
    """One job."""

    label: str
    """What the user knows it by."""
    config: RunConfig
    problems: Sequence[Problem]
    """What it searches; none where nothing could be cut out of its compiled models."""
    run: RunDir
    is_resumed: bool = False
    """Whether an earlier sitting began it."""
    models: Sequence[TakenModel] = ()
    """Of a resumed job whose searches had not begun: its compiled models, taken apart."""
