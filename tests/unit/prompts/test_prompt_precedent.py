"""A precedent in a prompt: its steps, its source as far as it fits, and that it is another's."""

from __future__ import annotations

import dataclasses

import pytest

from kopt.memory.precedent import PastStep, Precedent
from kopt.memory.recall import Memory
from kopt.prompts.budget import Budget
from kopt.prompts.memory_text import memory_section
from kopt.testing.small_fleet import small_request

PRECEDENT = Precedent(
    problem="0" * 64,
    family="norm",
    similarity=0.5,
    language="triton",
    speedup=3.0,
    steps=(
        PastStep(strategy="tile it", kind="incorrect"),
        PastStep(strategy="one pass", kind="correct", speedup=3.0),
    ),
    older=2,
    source="class ModelNew:\n" + "".join(f"    line_{n} = {n}\n" for n in range(100)),
)


def section(precedent: Precedent, *, memory: int) -> str:
    request = small_request(first=0, wanted=1)
    told = dataclasses.replace(request, memory=Memory(precedent=precedent))
    return memory_section(told, Budget(memory=memory))


def test_steps_and_source_are_told() -> None:
    text = section(PRECEDENT, memory=6_000)
    assert "Another problem of kind norm was made 3x as fast as its baseline" in text
    assert "- … 2 earlier left out …\n- tile it: incorrect\n- one pass: correct, 3x" in text
    assert "Its fastest version (triton)" in text
    assert "line_99 = 99" in text


@pytest.mark.parametrize("memory", [600, 1_500, 3_000])
def test_it_keeps_to_half_of_the_memorys_size(memory: int) -> None:
    text = section(PRECEDENT, memory=memory)
    assert "tile it" in text
    assert len(text) < memory // 2 + 700  # the section's own head, and notices of what is left out
