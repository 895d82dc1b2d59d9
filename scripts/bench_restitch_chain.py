"""What a stitched model costs beside the compiled one: a chain of milliseconds, a call alone."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from bench_restitch_parts import import_exported, load_subject_of, set_state, state_of

from kopt.problem import Problem
from kopt.timing import median_ci

CHAIN = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = x + torch.nn.functional.gelu(layer(norm(x)))
        return x


def get_inputs():
    return [torch.randn({rows}, {width})]


def get_init_inputs():
    return [{width}, 8]
"""
"""Eight blocks, each a product and a few generated kernels."""


def host_cost(*, device: str, target_ms: float) -> dict[str, Any]:
    """The processor's time of one call of a chain so small that calling it is all there is."""
    import torch

    problem = Problem(name="tiny", source=CHAIN.format(rows=1, width=8))
    compiled, again, given, folder = _chain(problem, device=device)
    spent_us: dict[str, list[float]] = {"compiled": [], "stitched": []}
    with torch.no_grad():
        for _ in range(30):
            for name, call in (("compiled", compiled), ("stitched", again)):
                began_ns = time.thread_time_ns()
                for _ in range(20):
                    call(*given)
                spent_us[name].append((time.thread_time_ns() - began_ns) / 20e3)
    folder.cleanup()
    # The least: whatever else runs on the host only ever adds.
    least = {name: round(min(each), 1) for name, each in spent_us.items()}
    extra_us = least["stitched"] - least["compiled"]
    return {"host": {**least, "share": round(extra_us / (target_ms * 1e3), 5)}}


def chain_overhead(*, device: str, target_ms: float, pairs: int) -> dict[str, Any]:
    """Time a chain of about `target_ms` against its exported file, in turns."""
    import torch

    rows, took_ms = 64, 0.0
    width = 512 if device == "cpu" else 4096
    for _ in range(4):
        problem = Problem(name="chain", source=CHAIN.format(rows=rows, width=width))
        compiled, again, given, folder = _chain(problem, device=device)
        sync = torch.cuda.synchronize if device == "cuda" else _nothing
        took_ms = statistics.median(_timed(compiled, given, sync) for _ in range(9))
        if 0.6 * target_ms <= took_ms <= 1.6 * target_ms:
            break
        folder.cleanup()
        rows = max(8, int(rows * target_ms / took_ms))
    ratios, extra_us = [], []
    for number in range(pairs):
        turn = (compiled, again) if number % 2 == 0 else (again, compiled)
        took = {id(each): _timed(each, given, sync) for each in turn}
        ratios.append(took[id(again)] / took[id(compiled)])
        extra_us.append((took[id(again)] - took[id(compiled)]) * 1e3)
    folder.cleanup()
    low, high = median_ci(ratios)
    return {
        "chain_ms": round(took_ms, 3),
        "overhead": round(statistics.median(ratios) - 1.0, 5),
        "overhead_ci": [round(low - 1.0, 5), round(high - 1.0, 5)],
        "extra_us": round(statistics.median(extra_us), 1),
    }


def _chain(
    problem: Problem, *, device: str
) -> tuple[Callable[..., Any], Callable[..., Any], Any, tempfile.TemporaryDirectory[str]]:
    import torch

    from kopt.actors.compiled.capture import capture
    from kopt.actors.compiled.recipes import make_recipe

    folder = tempfile.TemporaryDirectory()
    subject = load_subject_of(problem, device=device, folder=folder.name)
    captured = capture(subject.model, subject.given)
    recipe = make_recipe(captured, file=subject.file, given=subject.given)
    again = import_exported(problem, recipe, given=1, folder=folder.name, device=device)
    set_state(again, state_of(subject.model))
    # What takes note of each call is not the baseline's: torch.compile alone is.
    torch._dynamo.reset()
    compiled = torch.compile(subject.model, dynamic=False)
    with torch.no_grad():
        for _ in range(3):
            compiled(*subject.given)
            again(*subject.given)
    return compiled, again, subject.given, folder


def _timed(
    call: Callable[..., Any],
    given: Any,  # noqa: ANN401 - what the model is called with
    sync: Callable[[], None],
) -> float:
    """Milliseconds of one call."""
    import torch

    with torch.no_grad():
        sync()
        began_ns = time.perf_counter_ns()
        call(*given)
        sync()
    return (time.perf_counter_ns() - began_ns) / 1e6


def _nothing() -> None:
    """A CPU is waited for by the call itself."""
