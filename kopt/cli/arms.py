"""Names of a multirun's arms: jobs of one name are one arm, so that no two settings may share it.

An arm is its search, programmer, findings and so on, whatever problems and seeds it runs on. Jobs
that would be called alike and differ are told apart by their own overrides
(`mcts-openai,findings=none`). A name that the user or an experiment gave stands, for all of them:
KernelPro's seeds are temperatures too, and its arm is one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from kopt.cli.prepared import Prepared

NOT_OF_AN_ARM = frozenset(
    {"problem", "problems", "seed", "name", "out", "device", "cluster", "fleet", "keep_best"}
)
"""Sections and keys that say what an arm runs on, and where."""


def name_arms(jobs: Sequence[Prepared]) -> list[Prepared]:
    """Return the jobs with their arms named."""
    alike: dict[str, list[int]] = defaultdict(list)
    for number, job in enumerate(jobs):
        if job.config.arm is None:
            alike[job.config.arm_name].append(number)
    named = list(jobs)
    for arm, numbers in alike.items():
        ways = {number: _way(jobs[number]) for number in numbers}
        told = set.intersection(*(set(way) for way in ways.values()))
        for number, way in ways.items():
            own = [text for text in way if text not in told]
            if own:
                config = jobs[number].config.model_copy(update={"arm": ",".join([arm, *own])})
                named[number] = replace(jobs[number], config=config)
    return named


def _way(job: Prepared) -> list[str]:
    """The overrides of a job that make its arm, but for what its name says already."""
    kept = []
    for text in job.overrides:
        key, _, value = text.partition("=")
        if key.split(".")[0] in NOT_OF_AN_ARM or key.startswith("hydra"):
            continue
        if key in ("search", "programmer", "pipeline") and value == getattr(job.config, key).kind:
            continue
        kept.append(text)
    return kept
