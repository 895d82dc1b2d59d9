"""How versions are judged and what is refused, in words: on a CPU nothing is told of GPUs."""

from __future__ import annotations

from collections.abc import Mapping

from kopt.ports import WriteRequest
from kopt.prompts.budget import Budget
from kopt.prompts.policy_text import limits_text
from kopt.prompts.templates import filled

_CHECKS: Mapping[str, Mapping[str, str]] = {
    "cpu": {
        "precision": "For float32, products in bfloat16 or half precision pass only where that "
        "policy is loose.",
        "done": "be done",
    },
    "cuda": {
        "precision": "For float32, one product in TF32 or half precision passes only where that "
        "policy is loose; three, of operands split into a high and a low part and summed in "
        "float32, are about as exact.",
        "done": "be done, or be in the current stream,",
    },
}
_REFUSED: Mapping[str, Mapping[str, str]] = {
    "cpu": {
        "packages": "torch, numpy",
        "put_back": "the number of threads is",
        "allowed": "`try` and threads are",
    },
    "cuda": {
        "packages": "torch, triton, numpy",
        "put_back": "TF32 flags and the number of threads are",
        "allowed": "`try`, threads, streams and CUDA graphs are",
    },
}


def checks_section(request: WriteRequest, budget: Budget) -> str:
    """Return the section on how a version is judged."""
    del budget
    words = _CHECKS[_kind(request)]
    return filled("checks", limits=limits_text(request.terms.deadlines), **words)


def refused_section(request: WriteRequest, budget: Budget) -> str:
    """Return the section on what counts as cheating."""
    del budget
    return filled("refused", **_REFUSED[_kind(request)])


def _kind(request: WriteRequest) -> str:
    return "cpu" if request.target.device == "cpu" else "cuda"
