"""Why warps do not issue: the dominant stall, and barriers (KernelPro App. B, Listing 3).

The paper's `memory_dependency` counter does not exist on GPUs since Volta; `long_scoreboard` and
`lg_throttle` are what it stood for.
"""

# ruff: noqa: D102 - `trigger` and `analyze` are described in ProfilingTool

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from kopt.tools.counters import stall_counter
from kopt.tools.guards import ISSUE_ACTIVE, ROOFS, is_busy, is_near_roof
from kopt.tools.registry import ToolRegistry
from kopt.tools.tool import Analysis, ProfilingTool, graded
from kopt.tools.view import MissingFigure, View

BARRIER = stall_counter("barrier")
BLOCK_SIZE = "launch__block_size"

SHUFFLE_EXAMPLE = """\
for (int offset = 16; offset > 0; offset >>= 1)
    value += __shfl_down_sync(0xffffffff, value, offset);   // no __syncthreads() within a warp
"""


class _Stall(NamedTuple):
    """What one reason means."""

    cause: str
    fixes: tuple[str, ...]


STALLS: dict[str, _Stall] = {
    "long_scoreboard": _Stall(
        "warps wait for data from global, local or texture memory: too few bytes are in flight",
        (
            "Keep more bytes in flight: 16-byte loads, two to four independent loads a thread.",
            "Overlap loads with work: cp.async or TMA into a pipeline of buffers "
            "(Triton: num_stages 3 to 4).",
            "Read what is used again once, into shared memory or registers.",
            "Let more warps be resident: fewer registers or less shared memory a block.",
        ),
    ),
    "lg_throttle": _Stall(
        "the queue of memory instructions is full: many small accesses",
        (
            "Access 16 bytes a thread (float4, half8) in place of four accesses of 4.",
            "Take local arrays and spills away: each access of them is one of these instructions.",
        ),
    ),
    "short_scoreboard": _Stall(
        "warps wait for shared memory, special functions or shuffles",
        (
            "Look for bank conflicts; pad or swizzle the tile.",
            "Fewer special functions: one exp2 in place of exp and division, fast approximations "
            "where the tolerance allows.",
            "Keep in registers what is read from shared memory again and again.",
        ),
    ),
    "mio_throttle": _Stall(
        "the queue of shared-memory and special instructions is full",
        (
            "Fewer and wider shared-memory accesses (16 bytes a thread, ldmatrix).",
            "Fewer shuffles: reduce within a thread first.",
        ),
    ),
    "math_pipe_throttle": _Stall(
        "an arithmetic pipe is the limit",
        (
            "Use tensor cores for products where the precision policy allows.",
            "Fewer instructions: fused multiply-add, hoisted common terms, cheaper functions.",
        ),
    ),
    "gmma": _Stall(
        "warps wait for warpgroup matrix products: the tensor cores are not fed deep enough",
        (
            "A deeper pipeline: three to four stages loaded by TMA.",
            "Two consumer warpgroups and a producer warp.",
            "A larger N of the tile, so that each product takes longer than its issue.",
        ),
    ),
    "barrier": _Stall(
        "warps wait for each other at block barriers: imbalance, or too many of them",
        (
            "Reduce within a warp by shuffles before any barrier.",
            "Smaller blocks (at most 256 threads), or fewer warps.",
            "Two buffers in shared memory take one barrier of each iteration away.",
        ),
    ),
    "branch_resolving": _Stall(
        "warps wait for branch targets: short branches that diverge",
        (
            "Replace short branches by selection (predication): both sides computed, one kept.",
            "Hoist conditions that are equal for a block out of the loop.",
        ),
    ),
    "membar": _Stall(
        "warps wait for memory fences or atomics",
        (
            "Reduce within the block first and issue one atomic for each block.",
            "Fewer __threadfence; the narrowest scope that is right.",
        ),
    ),
    "no_instruction": _Stall(
        "warps wait for instructions: the loop does not fit the instruction cache",
        ("Less unrolling; fewer specialised copies of the loop body.",),
    ),
    "tex_throttle": _Stall(
        "the texture queue is full",
        ("Read through plain global loads, or fewer and wider texture reads.",),
    ),
}
"""Stall reason to its meaning. `selected`, `not_selected` and `wait` are signs of work."""


@ToolRegistry.register
class WarpStall(ProfilingTool):
    """The reason that holds most of the active warps, where the schedulers are not busy."""

    name = "warp_stall"
    title = "Warps stall"
    source = "ncu"
    required = (ISSUE_ACTIVE,)
    optional = (*(stall_counter(reason) for reason in STALLS), *ROOFS)
    thresholds: ClassVar[Mapping[str, float]] = {
        "stall_pct_high": 40.0,
        "stall_pct_critical": 60.0,
        "issue_active_below": 0.8,
    }
    priority = 80

    def trigger(self, view: View) -> bool:
        if view.need(ISSUE_ACTIVE) >= self.thresholds["issue_active_below"] or is_near_roof(view):
            return False
        known = _known(view)
        if known and max(known.values()) > self.thresholds["stall_pct_high"]:
            return True
        for reason in STALLS:
            if reason not in known and reason not in _RARE:
                raise MissingFigure(stall_counter(reason))
        return False

    def analyze(self, view: View) -> Analysis:
        known = _known(view)
        reason = max(known, key=lambda each: known[each])
        value = known[reason]
        issue_active = view.need(ISSUE_ACTIVE)
        severity = graded(
            value,
            (self.thresholds["stall_pct_critical"], "critical"),
            (self.thresholds["stall_pct_high"], "high"),
        )
        busy = is_busy(view)
        return Analysis(
            severity="medium" if busy else severity,
            summary=f"{value:.0f} % of the active warps stall on {reason}; the schedulers issue in "
            f"{100 * issue_active:.0f} % of the cycles.",
            root_cause=_sentence(STALLS[reason].cause),
            recommendations=STALLS[reason].fixes,
            expected_improvement="1.1-1.5x" if busy else "1.5-3x",
            observed={f"{reason}_pct": value, "issue_active": issue_active},
            cause=f"stall:{reason}",
        )


@ToolRegistry.register
class BarrierStall(ProfilingTool):
    """Warps wait at block barriers."""

    name = "barrier_stall"
    title = "Warps wait at barriers"
    source = "ncu"
    required = (BARRIER, BLOCK_SIZE)
    optional = ROOFS
    thresholds: ClassVar[Mapping[str, float]] = {
        "barrier_pct_high": 30.0,
        "barrier_pct_critical": 50.0,
    }
    priority = 75

    def trigger(self, view: View) -> bool:
        above = view.need(BARRIER) > self.thresholds["barrier_pct_high"]
        return above and not is_near_roof(view)

    def analyze(self, view: View) -> Analysis:
        value, block = view.need(BARRIER), view.need(BLOCK_SIZE)
        return Analysis(
            severity="critical" if value > self.thresholds["barrier_pct_critical"] else "high",
            summary=f"{value:.0f} % of the active warps wait at a barrier, in blocks of "
            f"{block:.0f} threads.",
            root_cause=_sentence(STALLS["barrier"].cause),
            recommendations=STALLS["barrier"].fixes,
            expected_improvement="1.1-1.5x",
            observed={"barrier_pct": value, "block_threads": block},
            code_example=SHUFFLE_EXAMPLE,
            explains=frozenset({"stall:barrier"}),
        )


_RARE = frozenset({"gmma", "membar", "tex_throttle"})
"""Reasons that not every chip counts: unknown, they do not keep the tool silent."""


def _known(view: View) -> dict[str, float]:
    values = {reason: view.get(stall_counter(reason)) for reason in STALLS}
    return {reason: value for reason, value in values.items() if value is not None}


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
