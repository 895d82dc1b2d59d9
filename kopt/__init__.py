"""kopt: parallel search for faster GPU kernels that are proven to be right."""

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
]
