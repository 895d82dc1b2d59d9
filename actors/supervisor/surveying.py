"""A problem in numbers, from its session: what its authors are told before the first one writes.

Nothing is measured for the sake of it that the first candidate would not need too.
"""

from __future__ import annotations

import torch

from kopt.actors.child.memory import spec_of
from kopt.actors.supervisor.duel import trusted
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.verify.trees import flatten
from kopt.survey import SizedTensor, Survey


def survey_of(bench: Bench, session: Session) -> Survey:
    """Return the survey of a session's problem, its baselines measured if they were not yet.

    Raises:
        ProblemError: the reference fails while it is timed.
        WorkerLost: the zygote is gone.
    """
    baselines = session.baselines
    with session.at_baselines:
        baselines.compiled()
    with bench.alone():
        trusted(session, baselines.ready)
        best, times_us = baselines.best(), dict(baselines.times_us)
    judged = session.sets[session.timed()[0]]
    return Survey(
        inputs=_sized(judged.arguments()),
        outputs=_sized(judged.outputs),
        state=tuple(
            SizedTensor(name=entry.name, shape=entry.shape, dtype=entry.dtype)
            for entry in session.reference.entries
        ),
        num_cases=1 + max(each.case for each in session.sets),
        baseline=best,
        baselines_us=tuple(sorted(times_us.items())),
        sol_us=session.light.sol_us,
        # A GPU's is of its data sheet, and told with the device.
        bytes_per_s=session.light.bytes_per_s if bench.device == "cpu" else None,
    )


def _sized(values: object) -> tuple[SizedTensor, ...]:
    """The tensors of a tree, in its order."""
    found = []
    for place, leaf in flatten(values):
        if isinstance(leaf, torch.Tensor):
            spec = spec_of(leaf)
            found.append(SizedTensor(name=place, shape=spec.shape, dtype=spec.dtype))
    return tuple(found)
