"""Which inputs a candidate is judged on: further cases, and sets that memory has no room for."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from kopt.actors.supervisor import draws
from kopt.errors import ProblemError
from kopt.problem import Problem

CASES = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x, power):
        return torch.softmax(x * self.scale, dim=-1) ** power


def get_inputs():
    return [torch.randn(64, 32), 2]


def get_input_cases():
    return [[torch.randn(3, 7), 2], [torch.randn(1, 1000), 3]]
"""


def as_candidate(source: str) -> str:
    return source.replace("class Model(", "class ModelNew(")


def names(made) -> list[str]:
    return [check.name for check in made.checks if check.name.startswith("values:")]


def test_a_candidate_that_is_right_on_every_case_is_correct(judge) -> None:
    problem = Problem(name="cases", source=CASES)
    made = judge(as_candidate(CASES), problem=problem)
    assert made.verdict.kind == "correct", made.verdict.reason
    for case in (1, 2):
        assert f"values:case{case}:own#0" in names(made)
        assert f"values:case{case}:signed_normal#0" in names(made)
    assert not made.degenerate


@pytest.mark.parametrize(
    ("change", "case"),
    [("x if x.shape[-1] != 7 else x * 0", 1), ("x if power == 2 else x * 0", 2)],
)
def test_a_candidate_that_is_wrong_on_one_case_is_incorrect(judge, change, case) -> None:
    problem = Problem(name="cases", source=CASES)
    source = as_candidate(CASES).replace("(x * self.scale", f"(({change}) * self.scale")
    made = judge(source, problem=problem)
    assert (made.verdict.kind, made.verdict.check) == ("incorrect", f"values:case{case}:own#0")


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ("5", "get_input_cases() must return a list, got int"),
        ("[5]", "get_input_cases()[0] must return a list, got int"),
        ("[[torch.randn(3, 7), object()]]", "get_input_cases()[0] holds a object"),
        ("[[torch.randn(3, 7)]]", "on input case 1, the reference fails"),
    ],
)
def test_cases_that_break_the_contract_are_the_problems_fault(judge, cases, words) -> None:
    source = CASES.replace("[[torch.randn(3, 7), 2], [torch.randn(1, 1000), 3]]", cases)
    with pytest.raises(ProblemError) as caught:
        judge(as_candidate(source), problem=Problem(name="cases", source=source))
    assert words in str(caught.value)


@pytest.mark.parametrize("exact_share", [1.0, 0.0], ids=["float64 held", "nothing in float64 held"])
def test_sets_that_are_not_held_are_made_again_and_judged_alike(
    judge, monkeypatch, exact_share
) -> None:
    held = Problem(name="held", source=CASES)
    first = judge(as_candidate(CASES), problem=held)
    monkeypatch.setattr(draws, "HELD_SHARE", 0.0)
    monkeypatch.setattr(draws, "EXACT_SHARE", exact_share)
    source = f"{CASES}\n# another problem to the evaluator, {exact_share}\n"
    tight = Problem(name="tight", source=source)
    for _ in range(2):
        made = judge(as_candidate(source), problem=tight)
        assert made.verdict.kind == "correct", made.verdict.reason
        assert names(made) == names(first)
        (note,) = [check.detail for check in made.checks if check.name == "memory"]
        released = note.partition(": ")[2].split(", ")
        assert "heavy_tail#0" in released
        # There are two of its own: with the weights as constructed, and with those that are timed.
        assert released.count("own#0") == (1 if exact_share else 2)
    wrong = as_candidate(source).replace("x * self.scale", "x.clamp(-30, 30) * self.scale")
    made = judge(wrong, problem=tight)
    assert made.verdict.kind == "incorrect", made.verdict.reason
    assert made.verdict.check in ("values:heavy_tail#0", "values:far_offset#0")


def test_later_calls_are_compared_with_float64_that_is_made_again(judge, monkeypatch) -> None:
    monkeypatch.setattr(draws, "EXACT_SHARE", 0.0)
    source = f"{CASES}\n# a third problem to the evaluator\n"
    problem = Problem(name="exact", source=source)
    right = judge(as_candidate(source), problem=problem)
    assert right.verdict.kind == "correct", right.verdict.reason
    counting = as_candidate(source).replace(
        "        return torch.softmax(x * self.scale, dim=-1) ** power",
        "        self.calls = getattr(self, 'calls', 0) + 1\n"
        f"        late = self.calls > {len(names(right))}\n"
        "        return torch.softmax(x * self.scale, dim=-1) ** power + 0.01 * late",
    )
    made = judge(counting, problem=problem)
    assert (made.verdict.kind, made.verdict.check) == ("incorrect", "two_outputs")


def test_a_references_child_maps_no_more_the_more_candidates_come(judge, candidate) -> None:
    def mapped() -> int:
        found = 0
        for pid in judge.descendants():
            with contextlib.suppress(OSError):
                lines = Path(f"/proc/{pid}/maps").read_text(encoding="ascii").splitlines()
                found += sum("memfd:kopt" in line for line in lines)
        return found

    counts = []
    for _ in range(3):
        assert judge(candidate()).verdict.kind == "correct"
        counts.append(mapped())
    assert counts[2] <= counts[1]
