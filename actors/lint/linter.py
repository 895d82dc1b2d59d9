"""The linter: one device, and a row for each problem that it is given.

The reference runs in children as it does for an evaluation. A lint is no contest: its inputs come
from a fixed seed unless a secret is set, so that the same table comes out again.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from kopt.actors.config import EvaluateConfig
from kopt.actors.devices.base import DeviceName
from kopt.actors.lint.answers import tensors_of
from kopt.actors.lint.operations import operation_remarks
from kopt.actors.lint.reactions import input_remarks, weight_remarks
from kopt.actors.lint.repeats import Repeat, repeat_remarks
from kopt.actors.lint.subject import Subject
from kopt.actors.lint.trivial import Material, trivial_remarks
from kopt.actors.supervisor.draws import draw_sets
from kopt.actors.supervisor.exchange_probe import usable_place
from kopt.actors.supervisor.inputs import JudgedSet
from kopt.actors.supervisor.reference import State
from kopt.actors.supervisor.settings import open_bench
from kopt.actors.verify.families import finite
from kopt.data.lint import LintRemark, LintRow, ordered
from kopt.errors import ProblemError, WorkerLost
from kopt.identity import derived_seed
from kopt.ladder import LADDERS
from kopt.problem import Problem

DEFAULT_SECRET = 0
"""Seed of the inputs where none is set."""


class Linter:
    """Looks at problems, one at a time."""

    def __init__(self, config: EvaluateConfig, *, device: DeviceName, cache_dir: Path) -> None:
        """Start the zygote.

        Args:
            config: ladder, module mode and deadlines.
            device: that references run on.
            cache_dir: kopt's cache.
        """
        secret = DEFAULT_SECRET if config.secret is None else config.secret
        config = config.model_copy(update={"secret": secret, "trials": 1})
        self._secret = secret
        bench = open_bench(config, device=device, cache_dir=cache_dir)
        place = usable_place(device, open_child=bench.child_ahead)
        self._bench = replace(bench, exchange=place)

    def lint(self, problem: Problem) -> LintRow:
        """Look at one problem; whatever its reference does is a remark."""
        self._bench.zygote.ensure()
        remarks: list[LintRemark] = []
        notes: list[str] = []
        try:
            self._look(problem, remarks, notes)
        except ProblemError as error:
            remarks.append(LintRemark(tag="broken", line=error.why))
        except WorkerLost as error:  # what forks its processes died of it
            remarks.append(LintRemark(tag="broken", line=str(error)))
        return LintRow(
            name=problem.name,
            problem=problem.problem_id,
            ladder=self._bench.config.ladder,
            remarks=ordered(remarks),
            notes=tuple(dict.fromkeys(notes)),
        )

    def close(self) -> None:
        """End the zygote and every child."""
        self._bench.zygote.close()

    def _look(self, problem: Problem, remarks: list[LintRemark], notes: list[str]) -> None:
        """Add what is found; remarks made before a failure stay.

        Raises:
            ProblemError: the reference cannot be looked at, or no further.
            WorkerLost: the zygote is gone.
        """
        secret = derived_seed(self._secret, "lint")
        subject = Subject(self._bench, problem, secret=secret)
        try:
            # Before any call: a call may change running statistics.
            states = subject.reference.states(seed=derived_seed(secret, "weights"))
            own = self._own_sets(subject, states[0], secret)
            if not all(finite(_floats(judged)) for judged in own):
                line = "the output on its own inputs is not finite"
                remarks.append(LintRemark(tag="not_finite", line=line))
                return
            drawn = draw_sets(self._bench, subject.reference, states, secret=secret)
            notes += [
                f"{check.name}: {check.detail}" for check in drawn.checks if check.name != "inputs"
            ]
            material = Material(
                subject=subject,
                ladder=LADDERS[self._bench.config.ladder],
                states=drawn.states,
                own=own,
                hidden=drawn.sets,
            )
            remarks += trivial_remarks(material)
            remarks += input_remarks(material, notes)
            remarks += weight_remarks(material, notes, parameters=subject.parameters())
            again = Subject(self._bench, problem, secret=secret)
            try:
                remarks += repeat_remarks(
                    Repeat(subject=again, ladder=material.ladder, state=material.states[0], own=own)
                )
            finally:
                again.end()
            remarks += operation_remarks(self._bench, problem, material, notes, secret=secret)
        finally:
            subject.end()

    def _own_sets(self, subject: Subject, state: State, secret: int) -> tuple[JudgedSet, JudgedSet]:
        """Two draws of the problem's own inputs, judged by the first calls of the process."""
        first, second = (
            subject.draw(
                name=f"lint#{number}",
                seed=derived_seed(secret, "own", number) % (1 << 31),
                state=0,
            )
            for number in range(2)
        )
        for judged in (first, second):
            subject.load(state)
            subject.judge(judged)
        return first, second


def _floats(judged: JudgedSet) -> list[torch.Tensor]:
    return tensors_of(judged.outputs)
