"""A leader's ideas come first in ROOT's slots; whoever is led writes the rest as if alone."""

import asyncio

import pytest

from kopt.candidate import Candidate
from kopt.driver.leading import LEAD, LedProgrammer
from kopt.errors import WorkerLost
from kopt.ports import Answer, WriteRequest
from kopt.testing.fakes import ScriptedProgrammer
from kopt.testing.small_fleet import small_request

IDEAS = tuple(
    Candidate(source=f"# idea {n}", language="torch", programmer="rewriter") for n in range(LEAD)
)


def leader_of(ideas: tuple[Candidate, ...], note: str = "") -> ScriptedProgrammer:
    return ScriptedProgrammer(lambda asked: Answer(candidates=ideas, exhausted=True, note=note))


def slots(programmer: ScriptedProgrammer) -> list[tuple[int, int]]:
    asked = [each.expansion for each in programmer.requests]
    return [(each.first_child, each.num_candidates) for each in asked]


def test_the_leader_is_asked_once_and_the_led_one_counts_from_its_own_first_idea() -> None:
    inner, leader = ScriptedProgrammer(), leader_of(IDEAS)
    led = LedProgrammer(inner, leader)

    async def both() -> tuple[Answer, Answer]:
        return await led.write(small_request(first=0, wanted=2)), await led.write(
            small_request(first=2, wanted=2)
        )

    one, two = asyncio.run(both())
    assert one.candidates == IDEAS[:2]
    assert two.candidates[0] == IDEAS[2]  # slot 2 is the leader's, slot 3 the led one's idea 0
    assert len(two.candidates) == 2
    assert not one.exhausted  # the leader has no more; the node has
    assert (slots(leader), slots(inner)) == ([(0, LEAD)], [(0, 1)])


def test_what_cannot_be_rewritten_is_left_to_the_led_one_and_the_reason_is_kept() -> None:
    inner = ScriptedProgrammer()
    led = LedProgrammer(inner, leader_of((), "not rewritable: a graph break"))
    answer = asyncio.run(led.write(small_request(first=0, wanted=2)))
    assert slots(inner) == [(0, 2)]
    assert answer.note == "not rewritable: a graph break"


def test_nodes_below_root_know_of_no_leader() -> None:
    inner, leader = ScriptedProgrammer(), leader_of(IDEAS)
    below = small_request(first=0, wanted=2, node=4)
    asyncio.run(LedProgrammer(inner, leader).write(below))
    assert (inner.requests, leader.requests) == ([below], [])


def test_a_lost_leader_is_asked_again() -> None:
    answers = iter([WorkerLost("rewriter", "killed"), Answer(candidates=IDEAS)])

    def script(asked: WriteRequest) -> Answer:
        answer = next(answers)
        if isinstance(answer, WorkerLost):
            raise answer
        return answer

    led = LedProgrammer(ScriptedProgrammer(), ScriptedProgrammer(script))
    with pytest.raises(WorkerLost):
        asyncio.run(led.write(small_request(first=0, wanted=1)))
    assert asyncio.run(led.write(small_request(first=0, wanted=1))).candidates == IDEAS[:1]
