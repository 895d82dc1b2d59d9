"""Every attack of the table gets the verdict it must get."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.bar


@pytest.mark.alone
def test_redteam_attack_is_refused(judge, timed_attack, planted, record_property) -> None:
    assert_refused(judge, timed_attack, planted, record_property)


def test_redteam_attack_is_refused_beside_other_work(
    judge, untimed_attack, planted, record_property
) -> None:
    assert_refused(judge, untimed_attack, planted, record_property)


def assert_refused(judge, attack, planted, record_property) -> None:
    made = judge(attack, str(planted))
    verdict = made.verdict
    won = verdict.kind == "correct" and made.gates[-1].passed
    is_right = verdict.kind in attack.kinds and not won
    accepted = verdict.kind == "correct" and not is_right
    record_property("redteam-outcome", f"adversarial {'accepted' if accepted else 'refused'}")
    assert is_right, f"{verdict.kind}: {verdict.reason}"
    assert not attack.says or any(
        check.name == attack.says and not check.passed for check in made.checks
    ), [check for check in made.checks if check.name.startswith(("provenance", attack.says))]
    assert not attack.check or verdict.check.startswith(attack.check), verdict.reason
