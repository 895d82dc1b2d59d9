"""What a profile found decides which neighbours of a candidate are tried first."""

from dataclasses import replace

import pytest

from kopt.actors.rewriter.codegen import Schedule
from kopt.actors.rewriter.moves import ANSWERS, Move, changes, ordered
from kopt.actors.rewriter.plan import Plan
from kopt.tools.registry import ToolRegistry

FIRST = Schedule()
PARENT = Plan(schedule=FIRST, without=("a",))
NEIGHBOURS = [
    replace(PARENT, schedule=replace(FIRST, gpu_math="fast")),
    replace(PARENT, schedule=replace(FIRST, gpu_block=2048)),
    replace(PARENT, schedule=replace(FIRST, gpu_persistent=1024)),
    replace(PARENT, schedule=None),
    replace(PARENT, without=("a", "b")),
    replace(PARENT, without=()),
]


@pytest.mark.parametrize(
    ("tools", "first"),
    [
        ((), 0),
        (("memory_coalescing",), 1),
        (("register_spill",), 2),
        (("launch_overhead",), 5),
        (("a tool of another package",), 0),
        (("a tool of another package", "register_spill", "memory_coalescing"), 2),
    ],
)
def test_neighbours_that_answer_the_first_finding_come_first(tools, first):
    found = ordered(iter(NEIGHBOURS), PARENT, tools=tools)
    assert found[0] == NEIGHBOURS[first]
    assert sorted(map(str, found)) == sorted(map(str, NEIGHBOURS))


def test_without_kernels_a_launch_bound_candidate_gets_some():
    parent = Plan()
    plans = [Plan(without=("a",)), Plan(schedule=FIRST)]
    assert ordered(plans, parent, tools=("kernel_fragmentation",))[0] == plans[1]


def test_changes_are_told_by_direction():
    more = replace(PARENT, schedule=replace(FIRST, gpu_block=2048, gpu_persistent=4096))
    assert changes(PARENT, more) == {
        Move("gpu_block", "other"),
        Move("gpu_block", "more"),
        Move("gpu_persistent", "other"),
        Move("gpu_persistent", "less"),
    }


def test_every_answer_is_to_a_tool_that_there_is():
    assert set(ANSWERS) <= set(ToolRegistry.names())
