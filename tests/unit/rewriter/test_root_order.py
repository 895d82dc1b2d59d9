"""Which plans come first from the root: the reference's equals are always among the first six."""

import pytest

from kopt.actors.rewriter.codegen import Schedule
from kopt.actors.rewriter.plan import Plan, Runs, neighbour_plans, plan_of, safer_plans
from kopt.actors.rewriter.root_order import root_plans

WAYS = [Schedule(), Schedule(gpu_block=2048)]
OWN = [
    Schedule(gpu_product="large"),
    Schedule(gpu_product="direct"),
    Schedule(),
    Schedule(gpu_product="small"),
]


def first(count=6, **settings):
    plans = root_plans(**{"schedules": WAYS, "applied": (), **settings})
    return list(dict.fromkeys(plans))[:count]


def test_without_a_compiler_kernels_come_first_as_before() -> None:
    assert first(applied=("a",))[:3] == [
        Plan(schedule=WAYS[0]),
        Plan(),
        Plan(algebra=False, schedule=WAYS[0]),
    ]


@pytest.mark.parametrize("convolutions", [True, False])
@pytest.mark.parametrize("many_launches", [True, False])
@pytest.mark.parametrize("vendor", [(), ("channels_last",)])
@pytest.mark.parametrize("schedules", [[], WAYS, OWN])
def test_the_compiled_graph_and_the_plain_calls_are_among_the_first_six(
    convolutions, many_launches, vendor, schedules
) -> None:
    runs = Runs(compiler=True, graph=True, many_launches=many_launches, convolutions=convolutions)
    plans = first(6, schedules=schedules, vendor=vendor, runs=runs)
    assert Plan(compiled=True) in plans
    assert Plan() in plans


def test_with_rules_the_reference_is_there_as_it_is_and_compiled() -> None:
    runs = Runs(compiler=True)
    plans = first(6, applied=("a",), runs=runs)
    assert Plan(algebra=False) in plans
    assert Plan(algebra=False, compiled=True) in plans


def test_products_are_tried_both_ways_and_by_the_library() -> None:
    plans = first(4, schedules=OWN, runs=Runs(compiler=True))
    assert [plan.schedule.gpu_product for plan in plans[:3]] == ["large", "direct", "library"]


def test_a_graph_of_many_launches_is_replayed_first() -> None:
    runs = Runs(compiler=True, graph=True, many_launches=True)
    plans = first(3, runs=runs)
    assert plans[0] == Plan(graphed=True, compiled=True)
    assert plans[1] == Plan(graphed=True, schedule=WAYS[0])


def test_convolutions_are_compiled_first_in_their_own_format() -> None:
    runs = Runs(compiler=True, convolutions=True)
    plans = first(2, vendor=("channels_last",), runs=runs)
    assert plans == [Plan(compiled=True, vendor=("channels_last",)), Plan(compiled=True)]


def test_ways_to_run_are_moves_and_what_failed_goes_back_to_plain_calls() -> None:
    runs = Runs(compiler=True, graph=True)
    parent = Plan(schedule=WAYS[0])
    plans = set(neighbour_plans(parent, schedules=WAYS, applied=(), runs=runs))
    assert Plan(graphed=True, schedule=WAYS[0]) in plans
    assert Plan(compiled=True) in plans
    failed = Plan(graphed=True, compiled=True)
    safer = list(safer_plans(failed, schedules=WAYS, applied=()))
    assert safer[:2] == [Plan(compiled=True), Plan()]


def test_a_plan_is_read_back_from_its_source_and_older_ones_too() -> None:
    plan = Plan(graphed=True, compiled=True, vendor=("channels_last",))
    assert plan_of(plan.marker()) == plan
    older = plan.marker().replace('"compiled":true,', "").replace('"graphed":true,', "")
    assert plan_of(older) == Plan(vendor=("channels_last",))
