"""A problem in numbers, from its session: what its authors are told before the first one writes.

For the sake of it nothing is measured that the first candidate would not need too, but for what a
CPU's cores compute, once.
"""

from __future__ import annotations

import functools

import torch

from kopt.actors.child.memory import spec_of
from kopt.actors.devices.cpu import product_flop_per_s
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
    baselines, is_cpu = session.baselines, bench.device == "cpu"
    with session.at_baselines:
        baselines.compiled()
    with bench.alone():
        trusted(session, baselines.ready)
        best, times_us = baselines.best(), dict(baselines.times_us)
        flop_per_s = _flop_per_s() if is_cpu else None
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
        # A GPU's are of its data sheet, and told with the device.
        bytes_per_s=session.light.bytes_per_s if is_cpu else None,
        flop_per_s=flop_per_s,
    )


@functools.cache
def _flop_per_s() -> float:
    """Of this host, measured by the first problem of a process."""
    return product_flop_per_s(torch.float32)


def _sized(values: object) -> tuple[SizedTensor, ...]:
    """The tensors of a tree, in its order."""
    found = []
    for place, leaf in flatten(values):
        if isinstance(leaf, torch.Tensor):
            spec = spec_of(leaf)
            found.append(SizedTensor(name=place, shape=spec.shape, dtype=spec.dtype))
    return tuple(found)
