"""A fleet, put together: the run folder, the cluster, the ports and the driver, in one call.

The only place where actors and driver meet. Loads ray and torch; the command imports it lazily.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from kopt.actors.cache.facts import judging_facts
from kopt.actors.cache.kinds import open_store
from kopt.actors.cached_evaluator import CachedEvaluator
from kopt.actors.cluster import Cluster, open_cluster
from kopt.actors.evidence.pool import RayProfiler
from kopt.actors.pool import RayEvaluator
from kopt.actors.programmers.registry import Workplace
from kopt.actors.quiet import Quiet
from kopt.cli.collector import calm_collector
from kopt.cli.crew import assemble
from kopt.cli.lane_report import lanes_reported
from kopt.clock import SystemClock
from kopt.config import RunConfig, to_plain
from kopt.data.best import write_best
from kopt.data.fold import RunState, fold, verdict_cache
from kopt.data.journal import Journal, read_events
from kopt.data.manifest import make_manifest, resumed
from kopt.data.results import write_results
from kopt.data.rundir import RunDir
from kopt.driver.limits import Limits, Spent
from kopt.driver.loop import Driver, Pace
from kopt.driver.replay import resumed_task
from kopt.driver.task import SearchSpec, SearchTask
from kopt.driver.verdicts import SharedVerdicts
from kopt.environment import cache_dir
from kopt.evaluation import from_json
from kopt.events import AnswerReceived, EventBody, MemoryUpdated, ProfileAnalysed
from kopt.ports import EventSink, Target, Terms, Usage
from kopt.problem import Problem
from kopt.search.searches import create_search

SLOW_WRITER_PER_SEARCH = 4
"""Expansions in flight in one search whose programmer is a model or a person."""

Observer = Callable[[str, EventBody], None]
"""Called with (search, event) after each event is on its way to disk."""


def _to_log(line: str) -> None:
    logging.getLogger(__name__).warning(line)


class ObservedSink:
    """An EventSink that shows each event to an observer once the journal has it."""

    def __init__(self, sink: EventSink, observer: Observer) -> None:
        """Wrap a sink."""
        self._sink = sink
        self._observer = observer

    def append(self, search: str, body: EventBody) -> int:
        """Append, then show."""
        seq = self._sink.append(search, body)
        self._observer(search, body)
        return seq

    def put_text(self, text: str) -> str:
        """Keep a text."""
        return self._sink.put_text(text)

    def get_text(self, sha256: str) -> str:
        """Return a kept text."""
        return self._sink.get_text(sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetResult:
    """What a fleet came to."""

    run_dir: RunDir
    failed: int
    """Searches that failed."""
    state: RunState
    """The whole journal, folded."""


def run_fleet(
    config: RunConfig,
    problems: Sequence[Problem],
    *,
    run_dir: RunDir,
    observer: Observer,
    on_target: Callable[[Target], None] | None = None,
    warn: Callable[[str], None] = _to_log,
) -> FleetResult:
    """Run every search of a config to its end, going on with what the run folder holds already.

    Args:
        config: validated.
        problems: resolved from it, in order.
        run_dir: new, or of an interrupted run of the same config.
        observer: of every event of this process.
        on_target: called once the device is known.
        warn: shows one line to the user that stops nothing.

    Raises:
        StoreError: the run folder cannot be used; what is journalled stays.
        ConfigError: the cluster or device asked for is not there.
        KeyboardInterrupt: the user stopped it; the run can be resumed.
    """
    clock = SystemClock()
    with Journal(run_dir.path, run=run_dir.name, clock=clock) as journal:
        earlier = fold(read_events(run_dir.path))
        for problem in problems:
            run_dir.keep_problem(problem)
        tasks = make_tasks(config, problems, earlier)
        if earlier.ended is None or not all(task.ended for task in tasks):
            _drive(config, tasks, earlier, journal, run_dir, observer, on_target, warn)
        state = fold(read_events(run_dir.path))
        write_results(run_dir, state)
        write_best(run_dir, state, keep=config.keep_best)
    failed = sum(1 for search in state.searches.values() if search.ended and search.ended.failed)
    return FleetResult(run_dir=run_dir, failed=failed, state=state)


def make_tasks(
    config: RunConfig, problems: Sequence[Problem], earlier: RunState
) -> list[SearchTask]:
    """Return a task for each problem and seed; those that the journal knows go on from it.

    Raises:
        StoreError: a journalled search does not replay.
    """
    rule = config.reward.rule(config.energy)
    policy_config: dict[str, Any] = {
        "search": config.search.model_dump(mode="json"),
        "reward": asdict(rule),
    }
    tasks = []
    for problem in problems:
        for seed in config.seed:
            spec = SearchSpec(
                problem=problem,
                arm=config.arm_name,
                seed=seed,
                policy=config.search.kind,
                policy_config=policy_config,
            )
            known = earlier.searches.get(spec.name)
            if known is not None:
                tasks.append(resumed_task(spec, known))
                continue
            tree = create_search(config.search, rule=rule, seed=seed)
            tasks.append(SearchTask(spec=spec, tree=tree))
    return tasks


def _drive(
    config: RunConfig,
    tasks: list[SearchTask],
    earlier: RunState,
    journal: Journal,
    run_dir: RunDir,
    observer: Observer,
    on_target: Callable[[Target], None] | None,
    warn: Callable[[str], None],
) -> None:
    clock = SystemClock()
    secret = config.evaluate.secret
    if secret is None:
        secret = secrets.randbits(63)
    manifest = run_dir.read_manifest() if run_dir.manifest_path.exists() else None
    _write_manifest(run_dir, config, secret=secret, earlier=manifest)
    logs = run_dir.path / "logs"
    logs.mkdir(exist_ok=True)
    with open_cluster(
        config.cluster,
        device=config.device,
        log_dir=logs,
        reserved_gpus=config.programmer.reserved_gpus,
    ) as cluster:

        async def drive() -> None:
            evaluate = config.evaluate.model_copy(update={"secret": secret})
            quiet = Quiet(cluster.device)
            evaluator = RayEvaluator(
                cluster,
                config=config.cluster,
                evaluate=evaluate,
                cache_dir=cache_dir(),
                quiet=quiet,
            )
            judge = CachedEvaluator(
                evaluator,
                config=evaluate,
                store=open_store(cache_dir(), "verdict"),
                facts=judging_facts,
            )
            workplace = Workplace(
                cluster=cluster,
                cluster_config=config.cluster,
                evaluate=evaluate,
                quiet=quiet,
                run_dir=run_dir.path,
                arm=config.arm_name,
                warn=warn,
                keep_figures=run_dir.keep_serving,
            )
            crew = await assemble(
                config,
                tasks,
                earlier=earlier,
                run=run_dir,
                workplace=workplace,
                judge=judge,
                make_profiler=partial(
                    RayProfiler,
                    cluster,
                    config=config.cluster,
                    evaluate=evaluate,
                    cache_dir=cache_dir(),
                    quiet=quiet,
                    with_rules=config.findings.feedback == "rules",
                ),
            )
            if on_target is not None:
                on_target(crew.target)
            _write_manifest(run_dir, config, secret=secret, earlier=manifest, device=crew.device)
            known = {key: from_json(record) for key, record in verdict_cache(earlier).items()}
            driver = Driver(
                tasks,
                programmer=crew.programmer,
                evaluator=crew.evaluator,
                sink=ObservedSink(journal, observer),
                clock=clock,
                target=crew.target,
                pace=pace(config, cluster),
                limits=Limits(**config.limits.model_dump()),
                verdicts=SharedVerdicts(known),
                spent=spent(earlier),
                terms=Terms(ladder=evaluate.ladder, track=evaluate.track),
                profiling=crew.profiling,
                remembering=crew.remembering,
            )
            try:
                async with lanes_reported(run_dir.path, evaluator.lanes, clock=clock):
                    await driver.run()
            finally:
                await crew.programmer.close()
                if crew.profiling.profiler is not None:
                    await crew.profiling.profiler.close()

        with calm_collector():
            asyncio.run(drive())


def spent(state: RunState) -> Spent:
    """Return what the journalled answers of a run have cost."""
    total = Spent()
    for search in state.searches.values():
        paid: list[AnswerReceived | ProfileAnalysed | MemoryUpdated] = [*search.memory]
        for expansion in search.expansions.values():
            paid += expansion.answers.values()
        paid += [each.analysis for each in search.profiles.values() if each.analysis is not None]
        for said in paid:
            total.add(
                Usage(
                    tokens_in=said.tokens_in, tokens_out=said.tokens_out, cost_usd=said.cost_usd
                )
            )
    return total


def pace(config: RunConfig, cluster: Cluster) -> Pace:
    """Return how much is to be under way at once.

    One expansion timed and one ahead for each device, and one for each build worker, keep every
    lane busy; more would only make the trees decide on less. Where writing takes long, what is
    being written comes on top.
    """
    lanes = 2 * cluster.devices + cluster.build_workers
    writing = config.programmer.expansions_at_once
    per_search = config.max_in_flight_per_search
    if per_search is None and writing:
        per_search = SLOW_WRITER_PER_SEARCH
    return Pace(
        max_in_flight=config.max_in_flight or lanes + writing,
        max_per_search=per_search,
        deterministic=config.deterministic,
    )


def _write_manifest(
    run_dir: RunDir,
    config: RunConfig,
    *,
    secret: int,
    earlier: dict[str, Any] | None,
    device: dict[str, Any] | None = None,
) -> None:
    """Write what is known so far: the device comes once the cluster is up."""
    manifest = make_manifest(
        to_plain(config),
        name=run_dir.name,
        created_ns=time.time_ns(),
        argv=sys.argv,
        device=device,
        secret=secret,
    )
    run_dir.write_manifest(manifest if earlier is None else resumed(earlier, manifest))
