"""Turns, pauses and deadlines, in an hour that takes no time."""

import asyncio
import random

import pytest

from kopt.actors.programmers.openai.asking import MAX_BACKOFF_S, Asker, Unanswered
from kopt.actors.programmers.openai.deadline import Deadline
from kopt.actors.programmers.openai.trouble import Trouble
from kopt.actors.programmers.openai.turns import Turns
from kopt.testing.virtual_time import run_in_virtual_time


class Highest(random.Random):
    """Draws the upper bound, so that pauses are known."""

    def uniform(self, a: float, b: float) -> float:
        return b


def now_s() -> float:
    return asyncio.get_running_loop().time()


def asker(*, retries: int = 3, backoff_s: float = 1.0, turns: Turns | None = None) -> Asker:
    free = Turns(max_concurrency=10, requests_per_minute=None)
    return Asker(turns or free, max_retries=retries, backoff_s=backoff_s, rng=Highest())


def busy(after_s: float | None = None) -> Trouble:
    return Trouble(kind="retry", reason="503: busy", label="503", after_s=after_s)


class Server:
    """Gives one outcome after another, each after some seconds; the last one for ever."""

    def __init__(self, *outcomes: object, takes_s: float = 0.0) -> None:
        self.outcomes = list(outcomes)
        self.takes_s = takes_s
        self.at_s: list[float] = []

    async def send(self) -> object:
        self.at_s.append(now_s())
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        await asyncio.sleep(self.takes_s)
        return outcome


def test_pauses_double_and_an_answer_ends_them():
    async def scenario():
        server, asking = Server(busy(), busy(), busy(), "answer"), asker()
        answer = await asking.ask(server.send, deadline=Deadline(100.0))
        return answer, server.at_s, asking

    answer, at_s, asking = run_in_virtual_time(scenario())
    assert answer == "answer"
    assert at_s == [0.0, 1.0, 3.0, 7.0]  # after pauses of 1, 2 and 4 s
    assert asking.retries == {"503": 3}
    assert asking.num_requests == 1


def test_a_pause_has_an_upper_bound():
    async def scenario():
        server = Server(*[busy()] * 9, "answer")
        await asker(retries=9).ask(server.send, deadline=Deadline(1e4))
        return server.at_s

    at_s = run_in_virtual_time(scenario())
    assert at_s[-1] - at_s[-2] == MAX_BACKOFF_S


def test_a_wait_that_the_server_asks_for_is_kept_to():
    async def scenario():
        server = Server(busy(30.0), "answer")
        await asker().ask(server.send, deadline=Deadline(100.0))
        return server.at_s

    assert run_in_virtual_time(scenario()) == [0.0, 31.0]  # 30 s, and a jitter of at most 1 s


def test_jitter_is_drawn_from_zero_to_the_bound():
    async def scenario():
        free = Turns(max_concurrency=10, requests_per_minute=None)
        asking = Asker(free, max_retries=1, backoff_s=1.0, rng=random.Random(0))
        pauses_s = []
        for _ in range(200):
            server = Server(busy(), "answer")
            await asking.ask(server.send, deadline=Deadline(100.0))
            pauses_s.append(server.at_s[1] - server.at_s[0])
        return pauses_s

    pauses_s = run_in_virtual_time(scenario())
    assert 0.0 <= min(pauses_s) < 0.05
    assert 0.95 < max(pauses_s) <= 1.0


def test_retries_that_are_used_up_say_the_last_reason_and_how_often():
    async def scenario():
        return await asker(retries=2).ask(Server(busy()).send, deadline=Deadline(100.0))

    assert run_in_virtual_time(scenario()) == Unanswered(reason="503: busy (tried 3 times)")


def test_without_retries_a_request_is_tried_once():
    async def scenario():
        return await asker(retries=0).ask(Server(busy()).send, deadline=Deadline(100.0))

    assert run_in_virtual_time(scenario()) == Unanswered(reason="503: busy (tried once)")


@pytest.mark.parametrize("kind", ["overflow", "no_model", "key", "refused"])
def test_what_asking_again_would_not_mend_is_not_asked_again(kind):
    trouble = Trouble(kind=kind, reason="no", label="400")

    async def scenario():
        server = Server(trouble)
        return await asker().ask(server.send, deadline=Deadline(100.0)), len(server.at_s)

    assert run_in_virtual_time(scenario()) == (trouble, 1)


def test_an_answer_after_the_deadline_is_none():
    async def scenario():
        server = Server(busy(), "too late", takes_s=60.0)
        return await asker().ask(server.send, deadline=Deadline(100.0)), now_s()

    outcome, ended_s = run_in_virtual_time(scenario())
    assert outcome == Unanswered(reason="no answer within 100 s (tried 2 times; before: 503: busy)")
    assert ended_s == 100.0


def test_a_wait_past_the_deadline_is_not_begun():
    async def scenario():
        server = Server(busy(3600.0))
        return await asker().ask(server.send, deadline=Deadline(100.0)), now_s()

    outcome, ended_s = run_in_virtual_time(scenario())
    assert outcome == Unanswered(
        reason="503: busy (tried once, the next in 3601 s: past the deadline)"
    )
    assert ended_s == 0.0


def test_waiting_for_a_turn_costs_nothing_of_the_deadline():
    async def scenario():
        asking = asker(turns=Turns(max_concurrency=1, requests_per_minute=None))
        server = Server("answer", takes_s=60.0)
        return await asyncio.gather(
            *(asking.ask(server.send, deadline=Deadline(100.0)) for _ in range(5))
        ), now_s()

    assert run_in_virtual_time(scenario()) == (["answer"] * 5, 300.0)


def test_requests_of_one_expansion_share_what_is_left():
    async def scenario():
        deadline = Deadline(100.0)
        asking = asker()
        await asking.ask(Server("first", takes_s=70.0).send, deadline=deadline)
        left_s = deadline.left_s()
        slow = Server("second", takes_s=40.0)
        beside = [asking.ask(slow.send, deadline=deadline.copy()) for _ in range(2)]
        return left_s, await asyncio.gather(*beside), now_s()

    left_s, outcomes, ended_s = run_in_virtual_time(scenario())
    assert left_s == 30.0
    assert outcomes == [Unanswered(reason="no answer within 100 s (tried once)")] * 2
    assert ended_s == 100.0


def test_no_more_requests_are_under_way_than_allowed():
    most = running = 0

    async def send() -> str:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await asyncio.sleep(1.0)
        running -= 1
        return "answer"

    async def scenario():
        asking = asker(turns=Turns(max_concurrency=3, requests_per_minute=None))
        await asyncio.gather(*(asking.ask(send, deadline=Deadline(10.0)) for _ in range(10)))
        return now_s()

    assert run_in_virtual_time(scenario()) == 4.0  # 3 + 3 + 3 + 1
    assert most == 3


def test_no_minute_begins_more_requests_than_allowed():
    async def scenario():
        asking = asker(turns=Turns(max_concurrency=100, requests_per_minute=20))
        server = Server("answer", takes_s=2.0)
        await asyncio.gather(*(asking.ask(server.send, deadline=Deadline(10.0)) for _ in range(70)))
        return server.at_s

    at_s = run_in_virtual_time(scenario())
    assert len(at_s) == 70
    for later, earlier in zip(at_s[20:], at_s, strict=False):
        assert later - earlier >= 60.0
    assert at_s[-1] == 180.0


def test_a_cancelled_request_gives_its_turn_back():
    async def scenario():
        turns = Turns(max_concurrency=1, requests_per_minute=None)
        asking = asker(turns=turns)
        hanging = asyncio.create_task(
            asking.ask(Server("never", takes_s=1e6).send, deadline=Deadline(1e7))
        )
        waiting = asyncio.create_task(asking.ask(Server("never").send, deadline=Deadline(1e7)))
        await asyncio.sleep(1.0)
        waiting.cancel()
        hanging.cancel()
        await asyncio.gather(hanging, waiting, return_exceptions=True)
        return await asking.ask(Server("next").send, deadline=Deadline(1.0))

    assert run_in_virtual_time(scenario()) == "next"
