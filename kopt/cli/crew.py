"""The crew of a fleet: who writes, who judges, and what candidates are written for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kopt.actors.apis.installed import with_apis
from kopt.actors.apis.versions import with_versions
from kopt.actors.programmers.agents import AgentsProgrammer
from kopt.actors.programmers.config import ProgrammerConfig, RecordedConfig, RewriterConfig
from kopt.actors.programmers.ensemble_config import EnsembleConfig
from kopt.actors.programmers.openai_config import ModelConfig
from kopt.actors.programmers.recorded import RecordedProgrammer
from kopt.actors.programmers.registry import Workplace, create_programmer
from kopt.actors.recorded_evidence import RecordedProfiler
from kopt.actors.recorded_verdicts import JudgingEvaluator, RecordedEvaluator
from kopt.cli.profiling import make_profiling
from kopt.cli.remembering import make_remembering
from kopt.cli.staffing import make_staff
from kopt.config import RunConfig
from kopt.data.fold import RunState
from kopt.data.recording import NotRecorded, Recording
from kopt.data.rundir import RunDir
from kopt.data.seeds import Seeds, keep_seeds, kept_seeds, resolve_seeds
from kopt.driver.leading import LedProgrammer
from kopt.driver.memories import Remembering
from kopt.driver.order import RecordedOrder
from kopt.driver.profiles import Profiling
from kopt.driver.seeds import SeededProgrammer
from kopt.driver.surveyed import SurveyedProgrammer
from kopt.driver.task import SearchTask
from kopt.environment import cache_dir
from kopt.errors import ConfigError
from kopt.ports import Evaluator, Profiler, Programmer, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """The ports of a fleet, ready to work."""

    programmer: Programmer
    staff: AgentsProgrammer | None
    """The roles that it writes by (pipeline=agents); None for one author."""
    evaluator: Evaluator
    profiling: Profiling
    remembering: Remembering
    target: Target
    """What candidates are written for, and their verdicts name."""
    device: dict[str, Any]
    """The same for the manifest."""


async def assemble(
    config: RunConfig,
    tasks: Sequence[SearchTask],
    *,
    earlier: RunState,
    run: RunDir,
    workplace: Workplace,
    judge: JudgingEvaluator,
    make_profiler: Callable[[], Profiler],
    make_programmer: Callable[[ProgrammerConfig, Workplace], Programmer] = create_programmer,
) -> Crew:
    """Return the crew that a config names.

    Args:
        config: of the run.
        tasks: of the fleet; those that play a recording are given its order.
        earlier: what an earlier part of this run came to.
        run: its folder; holds the seeds once they are resolved.
        workplace: of the programmer.
        judge: judges on the cluster's devices.
        make_profiler: starts the profile lane; called where something is to be profiled.
        make_programmer: gives the programmer of a section; another job's, where jobs share it.

    Raises:
        ConfigError: the programmer cannot be set up as configured, a seed or a file of tools cannot
            be found, or the devices differ.
        StoreError: a recording, or an earlier run with a seed, is damaged.
    """
    recorded = config.programmer if isinstance(config.programmer, RecordedConfig) else None
    seeds = {} if recorded else run_seeds(config, tasks, run=run, workplace=workplace)
    programmer = make_programmer(config.programmer, workplace)
    staff = make_staff(config, programmer, warn=workplace.warn)
    author: Programmer = staff or programmer
    here = await judge.target()
    device = {
        "kind": here.device,
        "name": here.name,
        "arch": here.arch,
        "languages": list(here.languages),
        "count": workplace.cluster.devices,
    }
    if recorded is not None and recorded.verdicts:
        assert isinstance(programmer, RecordedProgrammer)
        make_profiler = partial(RecordedProfiler, programmer.recording)
    profiling = make_profiling(
        config,
        devices=workplace.cluster.devices,
        earlier=earlier,
        programmer=author,
        make_profiler=make_profiler,
        warn=workplace.warn,
    )
    remembering = make_remembering(config, run=run.path, programmer=author, warn=workplace.warn)
    if recorded is None:
        reads_words = not isinstance(config.programmer, RewriterConfig)
        if reads_words:
            author = SurveyedProgrammer(author, judge, timed=not config.deterministic)
        model = config.programmer
        if isinstance(model, ModelConfig | EnsembleConfig) and model.seeds == "rewriter":
            leader = make_programmer(RewriterConfig(), workplace)
            author = LedProgrammer(author, leader)
        if seeds:
            author = SeededProgrammer(author, seeds)
        if reads_words:
            here = await asyncio.to_thread(
                with_apis, with_versions(here), cache_dir=cache_dir(), warn=workplace.warn
            )
        return Crew(
            programmer=author,
            staff=staff,
            evaluator=judge,
            profiling=profiling,
            remembering=remembering,
            target=here,
            device=device,
        )
    assert isinstance(programmer, RecordedProgrammer)
    recording = programmer.recording
    _follow(config, tasks, recording, arm=programmer.arm, earlier=earlier)
    evaluator = RecordedEvaluator(judge, recording, verdicts=recorded.verdicts, warn=workplace.warn)
    target = await evaluator.target()
    if recorded.verdicts:
        workplace.warn(
            f"verdicts are those of {recording.run.path} on {target.label}; "
            f"what it has none for is judged here, on {here.label}"
        )
        device |= {
            "kind": target.device,
            "name": target.name,
            "arch": target.arch,
            "languages": list(target.languages),
            "recorded_in": recording.run.name,
        }
    return Crew(
        programmer=author,
        staff=staff,
        evaluator=evaluator,
        profiling=profiling,
        remembering=remembering,
        target=target,
        device=device,
    )


def run_seeds(
    config: RunConfig, tasks: Sequence[SearchTask], *, run: RunDir, workplace: Workplace
) -> Seeds:
    """Return the seeds of a run: as they were when it began, else resolved now and kept.

    Raises:
        ConfigError: a seed cannot be found.
        StoreError: an earlier run is damaged, or the run folder cannot be written.
    """
    problems = list({task.spec.problem.problem_id: task.spec.problem for task in tasks}.values())
    if not config.search.seeds and not any(problem.given for problem in problems):
        return {}
    seeds = kept_seeds(run)
    if seeds is None:
        seeds = resolve_seeds(config.search.seeds, problems, warn=workplace.warn)
        keep_seeds(run, seeds)
    return seeds


def _follow(
    config: RunConfig,
    tasks: Sequence[SearchTask],
    recording: Recording,
    *,
    arm: str,
    earlier: RunState,
) -> None:
    """Have each task ask and tell in its recording's order, and check that the seeds agree.

    Raises:
        ConfigError: the run names seeds, and they are not the recording's.
    """
    seeds = list(config.search.seeds)
    for task in tasks:
        try:
            search = recording.search(task.spec.problem, arm=arm, seed=task.spec.seed)
        except NotRecorded:
            continue  # its first expansion is refused, and says why
        known = search.started.policy_config.get("search", {}).get("seeds", [])
        if seeds and seeds != list(known):
            raise ConfigError(
                f"search.seeds={seeds}: the recording's first ideas are its own "
                f"(its search.seeds were {list(known)}); leave search.seeds out"
            )
        before = earlier.searches.get(task.spec.name)
        task.order = RecordedOrder(
            search.operations,
            ended=search.ended,
            taken=() if before is None else before.operations,
        )
