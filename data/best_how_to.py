"""`best/<problem>/README.txt`: how to check a kernel, and how to put it into a model."""

from __future__ import annotations

from pathlib import Path

from kopt.problem import Problem

HOW_TO_FILE = "README.txt"

_TEXT = """\
Kernels for {name}, the fastest first: rank1.py is a Python module that needs PyTorch alone and
defines ModelNew, which is made and called as Model of reference.py is. rank1.json is its verdict.

Check and time it on this machine:

    python verify.py

Drop it into a model, in place of the module that it was made for (`model.part` here):

    import kopt
    model.part = kopt.load("{run}", "{name}", like=model.part)

takes over its weights, and refuses inputs of other shapes or dtypes than those it was judged on
(any_shape=True does not). With as_op=True torch.compile takes it without a graph break.
Without kopt:

    from rank1 import ModelNew             # this folder on sys.path
    new = ModelNew(*init_inputs)           # what reference.py's get_init_inputs() gives
    new.load_state_dict(model.part.state_dict())
    model.part = new.to(device).{mode}()

It was judged in {mode} mode{cast}, on what get_inputs() and get_input_cases() of reference.py make
and on further values in those shapes. It computes what `forward` returns and has no derivative: for
inference.
"""


def how_to(problem: Problem, *, run: Path, module_mode: str) -> str:
    """Return the text for a problem.

    Args:
        problem: whose kernels lie there.
        run: the run folder.
        module_mode: `train` or `eval`: how modules were judged.
    """
    cast = f", cast to {problem.dtype}" if problem.dtype else ""
    return _TEXT.format(name=problem.name, run=run, mode=module_mode, cast=cast)
