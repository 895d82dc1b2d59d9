"""What a fleet's authors are reminded of, and by whom: the configuration's answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kopt.cli.profiling import READS_NOTHING
from kopt.config import RunConfig
from kopt.data.precedents import PastRuns
from kopt.data.rundir import RunDir
from kopt.data.strategies import StrategyFile
from kopt.driver.memories import Remembering
from kopt.errors import ConfigError, StoreError
from kopt.ports import Extractor


def make_remembering(
    config: RunConfig, *, run: Path, programmer: object, warn: Callable[[str], None]
) -> Remembering:
    """Return what is remembered in a run; nothing where its authors read no words.

    Args:
        config: of the run.
        run: its folder; may have come from another machine.
        programmer: that draws lessons too, where the section says so.
        warn: shows one line to the user.

    Raises:
        ConfigError: the tracker's file or the past runs cannot be used, or the programmer draws no
            lessons.
        StoreError: the run's manifest is damaged.
    """
    memory = config.memory
    rule = memory.rule(reads=config.programmer.kind not in READS_NOTHING)
    strategies = None
    if memory.tracker is not None:
        strategies = StrategyFile(Path(memory.tracker).expanduser())
        try:
            strategies.read()
        except StoreError as error:
            raise ConfigError(f"conf memory.tracker: {error}") from None
    past = None
    if memory.retrieval == "on":
        folder = run.resolve().parent if memory.past is None else Path(memory.past).expanduser()
        try:
            past = PastRuns(folder, own=run)
        except ConfigError as error:
            raise ConfigError(f"conf memory.past: {error}") from None
    return Remembering(
        rule=rule,
        past=past,
        extractor=_extractor(config, programmer) if rule.search else None,
        strategies=strategies,
        run=RunDir(run).identity(),
        warn=warn,
    )


def _extractor(config: RunConfig, programmer: object) -> Extractor | None:
    """Return who draws lessons; None for the rules."""
    asked = config.memory.extractor
    if asked == "rules" or (asked is None and config.deterministic):
        return None
    if isinstance(programmer, Extractor):
        return programmer
    if asked == "model":
        raise ConfigError(
            f"conf memory.extractor=model: programmer={config.programmer.kind} draws no lessons; "
            "leave it null or take memory.extractor=rules"
        )
    return None
