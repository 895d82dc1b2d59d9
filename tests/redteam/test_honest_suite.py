"""Every honest kernel of the table is judged correct."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.alone, pytest.mark.bar]


def test_honest_kernel_is_correct(judge, kernel, record_property) -> None:
    made = judge(kernel)
    passed = made.verdict.kind == "correct"
    record_property("redteam-outcome", f"honest {'passed' if passed else 'refused'}")
    assert passed, f"{made.verdict.kind}: {made.verdict.reason}"
