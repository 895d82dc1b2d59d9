"""One job of a fleet: a configuration with a run folder of its own, and what became of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kopt.config import RunConfig, to_plain
from kopt.data.fold import RunState
from kopt.data.manifest import make_manifest, resumed
from kopt.data.rundir import RunDir
from kopt.driver.limits import Spent
from kopt.driver.replay import resumed_task
from kopt.driver.task import SearchSpec, SearchTask
from kopt.events import AnswerReceived, EventBody, MemoryUpdated, ProfileAnalysed
from kopt.ports import EventSink, Usage
from kopt.problem import Problem
from kopt.search.searches import create_search

Observer = Callable[[str, EventBody], None]
"""Called with (search, event) after each event is on its way to disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a fleet is to run."""

    config: RunConfig
    problems: Sequence[Problem]
    """Resolved from it, in order."""
    run_dir: RunDir
    """New, or of an interrupted run of the same config."""
    observer: Observer
    """Of every event of this process."""
    recall: Observer | None = None
    """Shown every event that its journal has when the sitting begins; None: nobody is."""
    label: str = ""
    """What the user knows it by among the jobs of a multirun; empty for one alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """What a job came to."""

    job: Job
    state: RunState
    """Its whole journal, folded."""
    error: Exception | None = None
    """What ended it before its time; what is journalled stays, and it can be resumed."""
    awaiting: int = 0
    """Expansions whose answers are awaited: it is suspended, and a resume goes on."""

    @property
    def failed(self) -> int:
        """Searches that failed."""
        ends = [search.ended for search in self.state.searches.values()]
        return sum(end is not None and end.failed for end in ends)

    @property
    def ended_by(self) -> list[str]:
        """The limits and stops that ended searches, each once, in the order they fired."""
        ends = [search.ended for search in self.state.searches.values()]
        reasons = [end.reason for end in ends if end is not None]
        return list(dict.fromkeys(r for r in reasons if r.startswith(("limits.", "stop."))))


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


def spent(state: RunState) -> Spent:
    """Return what the journalled answers and verdicts of a run have cost.

    Candidates are left out: the driver counts them by its trees.
    """
    from kopt.data.results import result_rows

    total = Spent()
    for call in state.calls:
        total.add(
            Usage(tokens_in=call.tokens_in, tokens_out=call.tokens_out, cost_usd=call.cost_usd)
        )
    for search in state.searches.values():
        paid: list[AnswerReceived | ProfileAnalysed | MemoryUpdated] = [*search.memory]
        for expansion in search.expansions.values():
            paid += expansion.answers.values()
        paid += [each.analysis for each in search.profiles.values() if each.analysis is not None]
        for said in paid:
            total.add(
                Usage(tokens_in=said.tokens_in, tokens_out=said.tokens_out, cost_usd=said.cost_usd)
            )
    total.used_device(sum(row["gpu_s"] for row in result_rows(state)))
    return total


def write_job_manifest(
    job: Job,
    *,
    secret: int,
    earlier: dict[str, Any] | None,
    device: dict[str, Any] | None = None,
) -> None:
    """Write what is known so far: the device comes once the cluster is up.

    Args:
        job: whose manifest it is.
        secret: seed of the hidden inputs; its commitment is written.
        earlier: manifest of an earlier part of the run; None where there is none.
        device: what candidates are judged on.

    Raises:
        StoreError: it cannot be written.
    """
    first = None
    if earlier is None and job.run_dir.manifest_path.is_file():
        first = job.run_dir.read_manifest()  # without the device: no search had begun
    manifest = make_manifest(
        to_plain(job.config),
        name=job.run_dir.name,
        created_ns=time.time_ns(),
        argv=sys.argv,
        device=device,
        secret=secret,
    )
    if first is not None:
        manifest |= {"created": first["created"], "argv": first["argv"]}
    job.run_dir.write_manifest(manifest if earlier is None else resumed(earlier, manifest))
