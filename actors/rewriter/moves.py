"""Which of a candidate's neighbours come first: those that its profile speaks for.

Every finding names moves that answer it. Neighbours are ordered by the first finding that one of
their changes answers; those that answer none keep their order behind. Nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Literal, NamedTuple

from kopt.actors.rewriter.codegen import Schedule
from kopt.actors.rewriter.plan import Plan

Change = Literal["generate", "more rules", "fewer rules", "compile", "graph"]


class Move(NamedTuple):
    """A change of one tunable in a direction."""

    tunable: str
    """Field of Schedule."""
    towards: Literal["more", "less", "other"]


ANSWERS: dict[str, tuple[Move | Change, ...]] = {
    "memory_coalescing": (Move("gpu_block", "more"), Move("gpu_persistent", "more")),
    "vectorization": (Move("gpu_block", "more"), Move("gpu_warps", "less")),
    "energy_uncoalesced": (Move("gpu_block", "more"),),
    "occupancy_limiter": (Move("gpu_warps", "more"), Move("gpu_block", "less")),
    "wave_quantization": (Move("gpu_block", "less"), Move("gpu_persistent", "less")),
    "register_spill": (Move("gpu_persistent", "less"), Move("gpu_block", "less")),
    "energy_register_spill": (Move("gpu_persistent", "less"), Move("gpu_block", "less")),
    "high_register_usage": (Move("gpu_block", "less"), Move("gpu_warps", "more")),
    "warp_stall": (Move("gpu_warps", "more"), Move("gpu_math", "other")),
    "barrier_stall": (Move("gpu_warps", "less"), Move("gpu_persistent", "less")),
    "launch_overhead": ("graph", "generate", "compile", "more rules"),
    "kernel_fragmentation": ("generate", "compile", "more rules"),
    "gpu_idle_gap": ("graph", "generate", "compile", "more rules"),
    "memcpy_overhead": ("generate",),
    "algorithmic_waste": (
        "more rules",
        "generate",
        Move("cpu_streaming", "other"),
        Move("cpu_keep", "other"),
        Move("gpu_persistent", "more"),
    ),
    "energy_instruction_bloat": (Move("gpu_math", "other"), Move("cpu_math", "other")),
}
"""By tool (domain notes A.3 and A.4); what a tool says of library kernels has no answer here."""


def ordered(plans: Iterable[Plan], parent: Plan, *, tools: Sequence[str]) -> list[Plan]:
    """Return plans one change away from a parent, those that answer its findings first.

    Args:
        plans: in the order of promise without a profile.
        parent: whose neighbours they are.
        tools: that found something, the most severe first.
    """
    wanted = [move for tool in tools for move in ANSWERS.get(tool, ())]

    def place(plan: Plan) -> int:
        made = changes(parent, plan)
        return next((at for at, move in enumerate(wanted) if move in made), len(wanted))

    return sorted(plans, key=place)


def changes(parent: Plan, plan: Plan) -> set[Move | Change]:
    """Return in which ways a plan differs from its parent."""
    made: set[Move | Change] = set()
    if len(plan.without) < len(parent.without) or (plan.algebra and not parent.algebra):
        made.add("more rules")
    if len(plan.without) > len(parent.without) or (parent.algebra and not plan.algebra):
        made.add("fewer rules")
    if plan.graphed and not parent.graphed:
        made.add("graph")
    if plan.compiled and not parent.compiled:
        made.add("compile")
    if parent.schedule is None or plan.schedule is None:
        return made | ({"generate"} if plan.schedule is not None else set())
    for field in fields(Schedule):
        before, after = (getattr(each.schedule, field.name) for each in (parent, plan))
        if before == after:
            continue
        made.add(Move(field.name, "other"))
        if isinstance(after, int) and not isinstance(after, bool):
            # 0 lets the generator choose: any number is a change, and larger ones are more.
            made.add(Move(field.name, "more" if after > (before or 1023) else "less"))
    return made
