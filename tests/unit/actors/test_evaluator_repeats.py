"""Many calls, all outputs alive: bits that agree, bits that differ, calls that are wrong."""

from __future__ import annotations

import pytest

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
