"""Whose turn it is, by hand: arms get alike of what is shared, and no place lies idle."""

from __future__ import annotations

from kopt.driver.limits import Spent
from kopt.driver.turns import Seat, Turns
from kopt.ports import Usage


def take(turns: Turns, seat: Seat, *, candidates: int = 1) -> bool:
    """What a driver does: ask if it is its turn."""
    if not turns.wants(seat):
        return False
    seat.arm.spent.asked(candidates)
    turns.fill(seat)
    return True


def sit(turns: Turns, arm: str, woken: list[str], *, priority: int = 0) -> Seat:
    return turns.sit(arm, priority=priority, on_turn=lambda: woken.append(arm))


def test_a_seat_alone_has_every_place_and_no_more() -> None:
    turns = Turns(places=2)
    seat = sit(turns, "a", [])
    assert [take(turns, seat) for _ in range(3)] == [True, True, False]
    assert seat.hungry
    turns.over(seat)
    assert (seat.granted, seat.hungry) == (1, False)


def test_a_free_place_goes_to_the_arm_that_has_had_fewer_candidates() -> None:
    turns, woken = Turns(places=1), list[str]()
    one, other = sit(turns, "a", woken), sit(turns, "b", woken)
    other.arm.spent.asked(2)
    assert take(turns, one)
    assert not take(turns, other)
    turns.over(one)  # 1 : 2, but only the other waits
    assert woken == ["b"]
    assert take(turns, other)  # 1 : 3
    assert not turns.wants(one)
    turns.over(other)
    assert woken == ["b", "a"]


def test_an_arm_that_fell_behind_is_served_until_it_has_caught_up() -> None:
    turns, woken = Turns(places=1), list[str]()
    one, other = sit(turns, "a", woken), sit(turns, "b", woken)
    one.arm.spent.asked(3)
    served = []
    holder = other
    assert take(turns, other)
    for _ in range(6):
        for seat in (one, other):
            turns.wants(seat)
        turns.over(holder)
        holder = one if one.granted else other
        served.append(holder.arm.name)
        assert take(turns, holder)
    # b has 1 of a's 3: twice more until it is level, then in turn, whoever waited longest first.
    assert served[:2] == ["b", "b"]
    assert sorted(served[2:]) == ["a", "a", "b", "b"]


def test_jobs_of_one_arm_are_served_in_the_order_in_which_they_waited() -> None:
    turns, woken = Turns(places=1), list[str]()
    first = turns.sit("a", priority=0, on_turn=lambda: woken.append("first"))
    second = turns.sit("a", priority=0, on_turn=lambda: woken.append("second"))
    assert take(turns, first)
    assert not turns.wants(second)
    assert not turns.wants(first)
    turns.over(first)
    assert woken == ["second"]


def test_a_higher_priority_is_served_first_however_much_it_has_had() -> None:
    turns, woken = Turns(places=1), list[str]()
    low, high = sit(turns, "a", woken), sit(turns, "b", woken, priority=1)
    high.arm.spent.asked(1_000)
    assert take(turns, low)
    assert not turns.wants(low)
    assert not turns.wants(high)
    turns.over(low)
    assert woken == ["b"]


def test_what_a_seat_does_not_use_goes_to_whoever_waits() -> None:
    turns, woken = Turns(places=1), list[str]()
    one, other = sit(turns, "a", woken), sit(turns, "b", woken)
    assert turns.wants(one)
    assert not turns.wants(other)
    turns.passes(one)
    assert woken == ["b"]


def test_a_job_that_ends_leaves_its_places_to_the_others() -> None:
    turns, woken = Turns(places=2), list[str]()
    one, other = sit(turns, "a", woken), sit(turns, "b", woken)
    assert take(turns, one)
    assert take(turns, one)
    assert not turns.wants(other)
    turns.leave(one)
    assert take(turns, other)
    assert take(turns, other)
    assert (one.arm.running, other.arm.running) == (0, 2)


def test_what_cannot_wait_is_counted_and_paid_back() -> None:
    turns = Turns(places=1)
    seat = sit(turns, "a", [])
    turns.fill(seat)  # it plays a recording: two at once on one place
    turns.fill(seat)
    assert not turns.wants(seat)
    turns.over(seat)
    assert seat.granted == 0
    turns.over(seat)
    assert seat.granted == 1


def test_device_time_is_shared_with_what_is_under_way_at_the_mean() -> None:
    turns, woken = Turns(places=2, share="gpu_s"), list[str]()
    one, other = sit(turns, "a", woken), sit(turns, "b", woken)
    assert take(turns, one)
    assert take(turns, other)
    one.arm.spent.used_device(4.0)
    turns.over(one)  # a: 4 s in all; one expansion over: 4 s is the mean
    other.arm.spent.used_device(1.0)
    assert take(turns, one)
    assert not turns.wants(one)
    assert not turns.wants(other)
    # a: 4 + one under way at (4 + 1) / 2 over; b: 1 + none.
    turns.over(other)
    assert woken == ["b"]


def test_tokens_are_shared() -> None:
    turns, woken = Turns(places=1, share="tokens"), list[str]()
    one, other = sit(turns, "a", woken), sit(turns, "b", woken)
    one.arm.spent.add(Usage(tokens_in=10, tokens_out=5))
    other.arm.spent.add(Usage(tokens_in=10))
    assert take(turns, one)
    assert not turns.wants(one)
    assert not turns.wants(other)
    turns.over(one)
    assert woken == ["b"]


def test_what_a_job_spends_goes_up_once_and_what_it_spent_before_with_it() -> None:
    arm, bounded = Spent(), Spent(tokens=7)
    job = Spent(tokens=5, candidates=2)
    job.join(arm, bounded)
    job.add(Usage(tokens_in=1, tokens_out=1, cost_usd=0.5))
    job.used_device(2.0)
    assert (job.tokens, arm.tokens, bounded.tokens) == (7, 7, 14)
    assert (arm.candidates, arm.cost_usd, bounded.device_s) == (2, 0.5, 2.0)


def test_places_that_come_later_go_to_whoever_waits() -> None:
    turns, woken = Turns(places=1), list[str]()
    one, other = sit(turns, "a", woken), sit(turns, "b", woken)
    assert take(turns, one)
    assert not take(turns, other)
    turns.grow(1)
    assert woken == ["b"]
    assert take(turns, other)
