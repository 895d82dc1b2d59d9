"""How long prompts get: the estimate, who gives way first, and what a search's prompts share."""

from __future__ import annotations

import dataclasses
import itertools
import runpy
from pathlib import Path
from typing import Any

import pytest

from kopt.expansion import MODES
from kopt.ports import Message, WriteRequest
from kopt.prompts import build
from kopt.prompts.budget import BUDGET, CHANGING_GIVE_WAY, FLOORS, Budget, fitted, stable_tokens
from kopt.prompts.builder import reference_is_cut, stable_part
from kopt.prompts.tokens import estimated_tokens, prompt_tokens, shared_prefix

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "prompts"
LEVEL2: dict[str, Any] = runpy.run_path(str(GOLDEN / "level2_case.py"))
DEVICES = ("cpu", "cuda")


def level2(mode: str, device: str) -> WriteRequest:
    made: WriteRequest = LEVEL2["level2_request"](mode, device)
    return made


def huge(mode: str = "optimize") -> WriteRequest:
    """The same with everything that can be long far too long."""
    made = level2(mode, "cuda")
    lines = "\n".join(f"x{number:05} = {number}" for number in range(20_000))
    parent = made.parent
    if parent is not None:
        candidate = dataclasses.replace(parent.candidate, source=lines)
        parent = dataclasses.replace(parent, candidate=candidate)
    entries = tuple(
        dataclasses.replace(made.memory.entries[number % 5], text=f"learned {number} " * 20)
        for number in range(500)
    )
    return dataclasses.replace(
        made,
        problem=dataclasses.replace(made.problem, source=lines),
        parent=parent,
        memory=dataclasses.replace(made.memory, entries=entries),
        manual=("## A library", *(f"- rule {number}" for number in range(5_000))),
    )


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("word", 1),
        ("normalisation", 2),  # 13 letters: 8 and 5
        ("1234567", 3),  # three digits each
        ("\n        \n    ", 1),
        ("a + b", 3),
        ("))))))))))", 6),  # 10 marks, 0.6 each
        ("→", 2),
        ("for i in range(10):", 7),  # for i in range ( 10 ):
    ],
)
def test_the_estimate_by_hand(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens


def test_the_estimate_is_linear_in_the_text() -> None:
    assert estimated_tokens(" " * 3_000_000) == 0
    assert estimated_tokens("\n \n" * 500_000) > 0
    assert estimated_tokens("x" * 8_000_000) == 1_000_000
    assert estimated_tokens("(" * 1_000_000) == 600_000


def test_prompts_share_their_beginning_to_the_character() -> None:
    one = (Message("system", "ab"), Message("user", "abc"))
    other = (Message("system", "ab"), Message("user", "abd"))
    assert shared_prefix(one, other) == (Message("system", "ab"), Message("user", "ab"))
    assert shared_prefix(one, (Message("system", "x"), one[1])) == (Message("system", ""),)
    assert shared_prefix(one, (Message("user", "ab"),)) == ()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", ["fenced", "json"])
def test_consecutive_prompts_of_a_search_share_the_whole_stable_part(device, form) -> None:
    prompts = [build(level2(mode, device), form=form) for mode in MODES]
    stable = stable_part(level2("initial", device), form=form)
    for one, other in itertools.pairwise(prompts):
        shared = shared_prefix(one, other)
        assert shared[0] == stable[0]
        assert shared[1].text.startswith(stable[1].text)
    assert prompt_tokens(stable) <= 4_000


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("guidelines", [False, True])
def test_the_stable_part_of_a_typical_problem_is_within_4000_tokens(device, guidelines) -> None:
    made = level2("optimize", device)
    memory = dataclasses.replace(made.memory, guidelines=guidelines)
    manual = ("## A library", *(f"- a rule of the library, number {each}" for each in range(80)))
    made = dataclasses.replace(made, memory=memory, manual=manual)
    stable = stable_part(made)
    assert prompt_tokens(stable) <= 4_000
    assert ("## Guidelines" in stable[0].text) == guidelines
    assert "a rule of the library, number 0\n" in stable[0].text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("device", DEVICES)
def test_a_typical_prompt_with_findings_memory_and_history_fits_8000_tokens(mode, device) -> None:
    prompt = build(level2(mode, device))
    assert prompt_tokens(prompt) <= 8_000
    text = prompt[1].text
    assert "## What is known by now" in text
    assert "## The way to here" in text
    # Nothing was cut: what is left out was before the prompt was written.
    told = text.replace("2 earlier left out", "").replace("2 further findings left out", "")
    assert "left out" not in told
    if (mode, device) == ("optimize", "cuda"):
        findings = [line for line in text.split("\n") if line.startswith("#### ")]
        assert len(findings) == 4


@pytest.mark.parametrize("tokens", [4_000, 8_000, 16_000, 24_000])
@pytest.mark.parametrize("mode", ["debug", "optimize"])
def test_the_whole_is_bounded_whatever_it_is_made_from(mode, tokens) -> None:
    prompt = build(huge(mode), budget=Budget(tokens=tokens))
    # What cannot give way (the task, the judging, the verdict) and the floors come on top.
    floors = sum(FLOORS.values()) // 2
    assert prompt_tokens(prompt) <= max(tokens, 4_000 + floors)
    assert "lines left out …" in prompt[1].text


def test_the_default_bound_is_kept_by_the_longest_prompts() -> None:
    assert prompt_tokens(build(huge())) <= BUDGET.tokens + 20


def numbered(num_lines: int) -> str:
    return "\n".join(f"x{number:05} = {number}" for number in range(num_lines))


def with_reference(mode: str, source: str) -> WriteRequest:
    made = level2(mode, "cuda")
    return dataclasses.replace(made, problem=dataclasses.replace(made.problem, source=source))


def test_a_long_reference_takes_what_others_leave() -> None:
    # 1,300 lines of 32 characters and 9 tokens: more than half of the whole, less than two thirds.
    line = "# a line of words about nothing\n"
    source = line * 1_300
    for mode in MODES:
        prompt = build(with_reference(mode, source))
        assert source in prompt[1].text
        assert not reference_is_cut(prompt)
        assert prompt_tokens(prompt) <= BUDGET.tokens
    # In a larger prompt what sections that change cannot fill is the reference's: more than two
    # thirds of it.
    assert stable_tokens(BUDGET, left=100_000) > 70_000
    long = build(with_reference("optimize", line * 10_000), budget=Budget(tokens=130_000))
    assert not reference_is_cut(long)


def test_a_reference_beyond_that_is_cut_and_says_how_much() -> None:
    made = with_reference("initial", numbered(20_000))
    prompt = build(made)
    assert reference_is_cut(prompt)
    assert prompt_tokens(prompt) <= BUDGET.tokens
    line = prompt[1].text.split("\n")[2]
    assert line.startswith("It is too long for this prompt: ")
    assert f" of its {len(made.problem.source):,} characters (" in line
    assert " of 20,000 lines) are left out, where the block says so." in line


@pytest.mark.parametrize(("left", "tokens"), [(2_000, 1_000), (20_000, 13_333), (60_000, 40_000)])
def test_the_share_of_what_all_prompts_of_a_problem_begin_with(left, tokens) -> None:
    # Of 2,000 half: the rest is less than what others need. Of 20,000 and 60,000 two thirds.
    assert stable_tokens(BUDGET, left=left) == tokens


def test_a_prompts_length_changes_nothing_of_what_all_begin_with() -> None:
    short, long = huge("initial"), huge("optimize")
    budget = Budget(tokens=8_000)
    system, user = stable_part(short, budget=budget)
    for request in (short, long):
        prompt = build(request, budget=budget)
        assert prompt[0] == system
        assert prompt[1].text.startswith(f"{user.text}\n\n## Task")


def test_sections_give_way_in_the_stated_order() -> None:
    def write(budget: Budget) -> str:
        return "\n".join("a " * (getattr(budget, name) // 2) for name in CHANGING_GIVE_WAY)

    start = Budget(**dict.fromkeys(CHANGING_GIVE_WAY, 8_000))
    # Six sections of 4,000 tokens: 24,000. The first one to its floor of 300 characters, 150 of
    # them tokens, leaves 20,150; then the second, to 600, leaves 16,450.
    least = fitted(start, write, tokens=20_000, give_way=CHANGING_GIVE_WAY)
    assert least.history == FLOORS["history"]
    assert FLOORS["memory"] < least.memory < 8_000
    assert least.findings == least.profile == least.log == least.version == 8_000
    assert estimated_tokens(write(least)) <= 20_000
    assert fitted(start, write, tokens=24_100, give_way=CHANGING_GIVE_WAY) == start
    none = fitted(start, write, tokens=10, give_way=CHANGING_GIVE_WAY)
    assert [getattr(none, name) for name in CHANGING_GIVE_WAY] == [
        FLOORS[name] for name in CHANGING_GIVE_WAY
    ]


def test_every_section_that_gives_way_has_a_floor_and_a_bound() -> None:
    bounds = {field.name for field in dataclasses.fields(Budget)}
    assert set(FLOORS) == bounds - {"tokens", "system_tokens"}
    assert all(getattr(BUDGET, name) > floor for name, floor in FLOORS.items())
