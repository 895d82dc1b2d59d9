"""What a profiled process is told to do: one forward call of a module, and how to look at it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from kopt.problem import Dtype, Problem

Look = Literal["trace", "work", "roof", "energy"]
"""A timeline of the call; the work of the reference; what the host reaches; the energy of the call
and of the reference's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One forward call."""

    look: Look
    reference: str
    """Source of the problem."""
    candidate: str | None
    """Source of the candidate; None: the reference itself is run."""
    dtype: Dtype | None
    module_mode: Literal["train", "eval"]
    matmul_tf32: bool
    cudnn_tf32: bool
    num_threads: int
    seed: int = 0
    """Of weights and inputs: figures of time and traffic do not hang on it."""

    def to_json(self) -> dict[str, Any]:
        """Return the form that `order_from_json` takes."""
        return asdict(self)


def order_from_json(value: dict[str, Any]) -> Order:
    """Return the order of its JSON form."""
    return Order(**value)


def order_for(
    problem: Problem,
    candidate: str | None,
    *,
    look: Look = "trace",
    module_mode: Literal["train", "eval"],
    matmul_tf32: bool,
    cudnn_tf32: bool,
    num_threads: int,
) -> Order:
    """Return the order for a problem's candidate, or for its reference (None)."""
    return Order(
        look=look,
        reference=problem.source,
        candidate=candidate,
        dtype=problem.dtype,
        module_mode=module_mode,
        matmul_tf32=matmul_tf32,
        cudnn_tf32=cudnn_tf32,
        num_threads=num_threads,
    )


def of_reference(order: Order, *, look: Look) -> Order:
    """Return the same order about the reference itself."""
    return replace(order, candidate=None, look=look)
