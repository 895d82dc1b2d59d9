"""Verdicts: their one-line reasons, and logs that stay small."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from kopt.timing import Timing
from kopt.verdict import (
    LOG_BYTES,
    Cheated,
    CompileFailed,
    Correct,
    Crashed,
    Incorrect,
    NumericError,
    TimedOut,
    bounded_log,
    last_line,
)

TIMING = Timing(
    time_us=50.0,
    time_ci_us=(49.0, 51.0),
    baseline="compile",
    baseline_us=100.0,
    speedup=2.0,
    speedup_ci=(1.95, 2.05),
    eager_us=120.0,
    compile_us=100.0,
)
ERROR = NumericError(max_abs=1e-6, rel_norm=1e-7, rho=1.5)

CASES = [
    (CompileFailed(stage="build", log="a\n  error: b \n\n"), "build: error: b"),
    (Crashed(stage="timing", log=""), "timing: "),
    (TimedOut(stage="import", limit_s=60.0), "import: no end within 60 s"),
    (Incorrect(check="values:ties", detail="1 of 9 wrong"), "values:ties: 1 of 9 wrong"),
    (Cheated(check="two_clocks", detail="they differ"), "two_clocks: they differ"),
    (
        Correct(timing=TIMING, error=ERROR),
        "2x [1.95, 2.05] over compile: 50 us against 100 us",
    ),
]


@pytest.mark.parametrize(("verdict", "reason"), CASES)
def test_every_verdict_says_why_in_one_line(verdict, reason) -> None:
    assert verdict.reason == reason


@pytest.mark.parametrize("verdict", [case for case, _ in CASES])
def test_every_verdict_pickles_and_cannot_be_changed(verdict) -> None:
    assert pickle.loads(pickle.dumps(verdict)) == verdict
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(verdict, dataclasses.fields(verdict)[0].name, "x")


def test_a_short_log_is_kept_whole_and_a_long_one_by_its_end() -> None:
    assert bounded_log("short\n") == "short\n"
    cut = bounded_log("head" + "é" * LOG_BYTES + "tail")
    assert cut.startswith("… (cut) …\n")
    assert cut.endswith("étail")
    assert LOG_BYTES - 2 <= len(cut.encode()) <= LOG_BYTES
    assert bounded_log("\ud800") == "?"


def test_the_last_line_is_the_last_that_says_something() -> None:
    assert last_line("a\n b \n\n  \n") == "b"
    assert last_line(" \n") == ""
    assert len(last_line("x" * 999)) == 300
