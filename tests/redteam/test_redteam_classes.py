"""Every class of exploit has an attack in the table, or a reason why no candidate can be one."""

from __future__ import annotations

import pytest

ELSEWHERE = {
    36: "which baselines are measured is the evaluator's choice, no candidate's",
    37: "a gain over launch overhead is a gain; it is reported against each baseline",
    39: "noise of the machine is no candidate's",
    45: "removable work in a task is the task's: its lint tells",
    46: "structure that the inputs always have is the problem's: kept, and noted in the verdict",
    59: "test_redteam_isolation.py",
    60: "results are gathered by the driver, not by candidates",
}


def test_redteam_every_class_is_tried_or_has_its_reason(all_attacks) -> None:
    tried = {int(case.number) for case in all_attacks}
    assert not tried & set(ELSEWHERE)
    assert tried | set(ELSEWHERE) == set(range(1, 61))


def test_redteam_attacks_and_honest_kernels_have_names_of_their_own(
    all_attacks, all_honest
) -> None:
    for cases in (all_attacks, all_honest):
        names = [(case.number, case.name, case.where) for case in cases]
        assert len(names) == len(set(names))


def test_honest_kernels_are_at_least_forty(all_honest) -> None:
    assert sum(case.where == "cpu" for case in all_honest) >= 40


@pytest.mark.parametrize("number", [f"F{index}" for index in range(1, 13) if index != 9])
def test_honest_suite_has_every_class_of_false_refusal(all_honest, number) -> None:
    """F9, a candidate judged after another's crash, is test_redteam_crashes.py."""
    assert any(case.number == number for case in all_honest)
