"""Candidates that torch builds inline: half a minute, ahead of tests that are timed alone."""

from __future__ import annotations

import pytest


@pytest.mark.slow
def test_honest_and_adversarial_extensions_are_built_once(
    judge_of, all_honest, all_attacks
) -> None:
    inline = [
        case
        for case in (*all_honest, *all_attacks)
        if case.where == "cpu" and "load_inline" in case.before
    ]
    assert len({case.text() for case in inline}) == 1
    built = [judge_of(case.device, case.ladder, case.track).build(case) for case in inline]
    assert all(each.verdict is None for each in built), built
    assert len({each.build_dir for each in built}) == 1
