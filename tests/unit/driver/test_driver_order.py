"""A recorded order: what is held back, what is due, and when it is given up."""

from __future__ import annotations

import asyncio

from kopt.data.fold import Operation
from kopt.driver.order import RecordedOrder, Step
from kopt.events import ExpansionAsked, ExpansionCancelled, SearchEnded, SearchExtended, Told
from kopt.expansion import first_expansion


def asked(expansion: int) -> ExpansionAsked:
    return ExpansionAsked(
        expansion=expansion,
        parent_node=0,
        parent=None,
        mode="initial",
        n=2,
        first_child=0,
        seed=0,
    )


def told(expansion: int, index: int) -> Told:
    return Told(expansion=expansion, index=index, node=1, reward=0.0)


def cancelled(expansion: int) -> ExpansionCancelled:
    return ExpansionCancelled(expansion=expansion, exhausted=False, reason="")


ASKED_0, ASKED_1 = Step("expansion_asked", 0), Step("expansion_asked", 1)
TOLD_00, TOLD_01, TOLD_10 = Step("told", 0, 0), Step("told", 0, 1), Step("told", 1, 0)
CANCELLED_1 = Step("expansion_cancelled", 1)
OPERATIONS: list[Operation] = [
    asked(0),
    told(0, 1),
    asked(1),
    told(1, 0),
    SearchExtended(policy_config={}),
    told(0, 0),
    cancelled(1),
]
STEPS = [ASKED_0, TOLD_01, ASKED_1, TOLD_10, TOLD_00, CANCELLED_1]


def order(ended: SearchEnded | None = None, *, taken: int = 0) -> RecordedOrder:
    return RecordedOrder(OPERATIONS, ended=ended, taken=OPERATIONS[:taken])


def test_each_step_is_due_or_held_back_by_the_one_before() -> None:
    follows = order()
    assert (follows.is_due, follows.holds_asks) == (True, False)
    follows.took(ASKED_0)
    assert (follows.is_due, follows.holds_asks) == (False, True)
    follows.took(TOLD_01)
    assert (follows.is_due, follows.holds_asks) == (True, False)
    for step in STEPS[2:]:
        follows.took(step)
    assert (follows.is_due, follows.holds_asks) == (False, False)
    assert follows.is_followed


def test_what_comes_early_waits_for_its_turn() -> None:
    follows = order()
    heard = []

    async def hear(step: Step) -> None:
        await follows.turn(step)
        heard.append(step)
        follows.took(step)

    async def all_at_once() -> None:
        async with asyncio.timeout(5):
            await asyncio.gather(*(hear(step) for step in reversed(STEPS)))

    asyncio.run(all_at_once())
    assert heard == STEPS


def test_a_step_that_the_recording_does_not_have_gives_the_order_up() -> None:
    follows = order()

    async def something_else() -> None:
        async with asyncio.timeout(5):
            late = asyncio.create_task(follows.turn(TOLD_10))
            await asyncio.sleep(0)
            assert not late.done()
            await follows.turn(Step("expansion_cancelled", 0))
            await late

    asyncio.run(something_else())
    assert not follows.is_followed
    assert (follows.is_due, follows.holds_asks) == (False, False)


def test_a_step_taken_out_of_turn_gives_the_order_up() -> None:
    follows = order()
    follows.took(TOLD_00)
    assert not follows.is_followed


def test_an_earlier_part_of_the_run_has_taken_its_steps() -> None:
    assert order(taken=2).is_due
    assert order(taken=3).holds_asks
    after_the_extension = order(taken=6)
    assert after_the_extension.is_followed
    other = RecordedOrder(OPERATIONS, ended=None, taken=[asked(0), told(0, 0)])
    assert not other.is_followed


def test_slots_are_sorted_as_the_recording_heard_of_them() -> None:
    expansion = first_expansion(num_candidates=3)
    assert order().sort(expansion, [0, 1, 2]) == [1, 0, 2], "slot 2 is not in the recording"


def test_the_recordings_end_counts_if_it_came_from_outside_the_tree() -> None:
    for reason, counts in (
        ("limits.tokens=5", True),
        ("failed: no key", True),
        ("budget", False),
        ("exhausted: nothing more", False),
    ):
        ended = SearchEnded(reason=reason, failed=False)
        follows = order(ended)
        assert follows.end is None
        for step in STEPS:
            follows.took(step)
        assert follows.end == (ended if counts else None)
