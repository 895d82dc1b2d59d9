"""Candidates that are right, in the evaluator's real processes: fast, slow, in other words."""

from __future__ import annotations


def test_a_right_candidate_is_correct_and_timed(judge, candidate) -> None:
    made = judge(candidate())
    assert made.verdict.kind == "correct", made.verdict.reason
    assert [gate.name for gate in made.gates] == ["static", "correctness", "performance"]
    assert made.verdict.timing.num_pairs == 4
    assert 0.5 < made.verdict.timing.speedup < 2.0
    assert made.sandbox in ("process", "namespace")
