"""kopt: parallel search for faster GPU kernels that are proven to be right."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from kopt.candidate import Candidate
from kopt.evaluation import Evaluation
from kopt.expansion import Expansion
from kopt.problem import Problem
from kopt.verdict import Cheated, CompileFailed, Correct, Crashed, Incorrect, TimedOut, Verdict
from kopt.version import __version__

__all__ = [
    "Candidate",
    "Cheated",
    "CompileFailed",
    "Correct",
    "Crashed",
    "Evaluation",
    "Expansion",
    "Incorrect",
    "Problem",
    "TimedOut",
    "Verdict",
    "__version__",
    "load",
]


def load(
    run: str | Path,
    problem: str | None = None,
    *,
    like: Any = None,  # noqa: ANN401 - an nn.Module, as above
    init: Sequence[Any] | None = None,
    arm: str | None = None,
    rank: int | None = None,
    device: str | None = None,
    any_shape: bool = False,
    as_op: bool = False,
) -> Any:  # noqa: ANN401 - as above
    """Return the best kernel of a run: a `torch.nn.Module` to put into a model.

        model.norm = kopt.load("runs/first", "mine/norm", like=model.norm)

    It is built and run in this process. It has no derivative unless its author wrote one, and it
    refuses inputs of another form than those it was judged on.

    Args:
        run: a run folder, or the folder of a multirun.
        problem: the problem's name; None where the run has a single one.
        like: the module that it takes the place of, whose state it takes over and on whose device
            it lies; None leaves its weights as its constructor makes them.
        init: arguments of its constructor; None takes the problem's `get_init_inputs()`.
        arm: of a multirun with several.
        rank: 2 for the second fastest; 1 takes the fastest even where it is no faster than the
            reference.
        device: where it lies; None is `like`'s, or the one it was judged on.
        any_shape: call it with whatever comes.
        as_op: wrap it as an operation of torch (`torch.library`), which `torch.compile` takes
            without a graph break; only where tensors go in, new tensors come out and nothing is
            changed in place.

    Raises:
        kopt.errors.ConfigError: no such run, problem, arm or rank; nothing was found that is
            faster; or it does not fit `like` or this machine. One line, with what to do.
        kopt.errors.StoreError: the run folder is damaged.
    """
    made = import_module("kopt.actors.use.load")
    return made.load(
        run,
        problem,
        like=like,
        init=init,
        arm=arm,
        rank=rank,
        device=device,
        any_shape=any_shape,
        as_op=as_op,
    )
