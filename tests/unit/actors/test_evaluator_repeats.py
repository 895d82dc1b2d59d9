"""Many calls, all outputs alive: bits that agree, bits that differ, calls that are wrong."""

from __future__ import annotations

import pytest

from kopt.actors.supervisor.unseen_timed import Longer, too_long

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def detail(made, name: str) -> str:
    return next(check.detail for check in made.checks if check.name == name)


def test_calls_that_give_the_same_bits_are_said_to(judge, candidate) -> None:
    made = judge(candidate("return right(self, x)"))
    assert made.verdict.kind == "correct", made.verdict.reason
    assert "inputs agree bit for bit" in detail(made, "repeats")


def test_sums_in_another_order_are_right_and_said_to_differ(judge, candidate) -> None:  # F11
    body = """
        import random
        y = right(self, x)
        return y * (1.0 + random.choice((0.0, 1.2e-7)))
    """
    made = judge(candidate(body))
    assert made.verdict.kind == "correct", made.verdict.reason
    assert "differ in bits" in detail(made, "repeats")
    assert detail(made, "repeats").endswith("all are right")


def test_one_call_in_forty_that_is_wrong_is_found(judge, candidate) -> None:  # 16
    body = """
        calls.append(1)
        y = right(self, x)
        if len(calls) % 40 == 0:
            y.view(-1)[7] += 1.0
        return y
    """
    made = judge(candidate(body, before="calls = []"))
    assert made.verdict.kind == "incorrect", made.verdict.reason


@pytest.mark.parametrize("size", [3, 16])
def test_buffers_returned_in_turn_are_found(judge, candidate, size) -> None:  # 15
    body = f"""
        y = right(self, x)
        ring.append(ring.pop(0) if len(ring) == {size} else torch.empty_like(y))
        return ring[-1].copy_(y)
    """
    made = judge(candidate(body, before="import torch\nring = []"))
    assert made.verdict.kind in ("incorrect", "cheated"), made.verdict.reason


# -- what is too long on inputs never seen ---------------------------------------------------------


def test_what_the_reference_takes_longer_too_is_allowed_half_as_much_again() -> None:
    mine = Longer(seen_us=[(300.0, 100.0)], unseen_us=[(360.0, 160.0)])
    # 1.5 * 40 + 0.1 * 100 + 10 = 80 us, and 60 us it is; beside a reference with 0 us, 20 us.
    theirs = Longer(seen_us=[(500.0, 300.0)], unseen_us=[(540.0, 340.0)])
    assert too_long(mine, theirs, call_us=100.0, device="cpu") is None
    steady = Longer(seen_us=[(500.0, 300.0)], unseen_us=[(500.0, 300.0)])
    why = too_long(mine, steady, call_us=100.0, device="cpu")
    assert why is not None
    assert "by our clock a timed call takes 60 us longer" in why


def test_a_clock_of_its_own_that_shows_it_is_enough() -> None:
    # By ours, 12 us: noise covers it.
    mine = Longer(seen_us=[(700.0, 100.0)], unseen_us=[(712.0, 140.0)])
    theirs = Longer(seen_us=[(800.0, 200.0)], unseen_us=[(800.0, 200.0)])
    why = too_long(mine, theirs, call_us=100.0, device="cuda")
    assert why is not None
    assert why.startswith("by its own clock")


def test_the_quickest_of_several_blocks_counts_for_a_candidate() -> None:
    mine = Longer(
        seen_us=[(300.0, 100.0), (900.0, 700.0)], unseen_us=[(900.0, 800.0), (310.0, 105.0)]
    )
    theirs = Longer(seen_us=[(300.0, 100.0)], unseen_us=[(300.0, 100.0)])
    assert too_long(mine, theirs, call_us=100.0, device="cpu") is None


def test_inputs_that_come_from_memory_may_take_their_time() -> None:
    mine = Longer(seen_us=[(300.0, 100.0)], unseen_us=[(450.0, 250.0)])
    theirs = Longer(seen_us=[(500.0, 300.0)], unseen_us=[(500.0, 300.0)])
    # 0.1 * 100 + 10 = 20 us, and 2 MB at 10 GB/s are 200 us more.
    assert too_long(mine, theirs, call_us=100.0, device="cpu") is not None
    assert too_long(mine, theirs, call_us=100.0, device="cpu", input_bytes=2_000_000) is None
