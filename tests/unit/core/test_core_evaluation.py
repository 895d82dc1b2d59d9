"""An evaluation and its JSON form are one and the same, for every verdict."""

from __future__ import annotations

import json
import math
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kopt.candidate import LANGUAGES
from kopt.evaluation import (
    Check,
    EvalJson,
    Evaluation,
    TimingJson,
    from_json,
    missing_baselines,
    to_json,
)
from kopt.ladder import LADDER_NAMES
from kopt.timing import Timing
from kopt.verdict import (
    VERDICT_KINDS,
    Cheated,
    CompileFailed,
    Correct,
    Crashed,
    Incorrect,
    NumericError,
    TimedOut,
)

text = st.text(max_size=40)
times_us = st.floats(min_value=1e-3, max_value=1e9)
maybe_us = st.none() | times_us
figures = st.floats(min_value=0.0, max_value=1e30) | st.just(math.inf)
errors = st.builds(
    NumericError,
    max_abs=figures,
    rel_norm=figures,
    rho=st.none() | st.floats(min_value=0.0, max_value=1e30),
)
timings = st.builds(
    Timing,
    time_us=times_us,
    time_ci_us=st.tuples(times_us, times_us),
    baseline=st.sampled_from(["eager", "compile", "max_autotune"]),
    baseline_us=times_us,
    speedup=times_us,
    speedup_ci=st.tuples(times_us, times_us),
    eager_us=times_us,
    compile_us=maybe_us,
    max_autotune_us=maybe_us,
    sol_us=maybe_us,
    num_pairs=st.integers(0, 100),
    protocol=st.sampled_from(["abba", "do_bench", "kernelbench"]),
)
VERDICTS = {
    "compile_failed": st.builds(CompileFailed, stage=text, log=text),
    "crashed": st.builds(Crashed, stage=text, log=text),
    "timed_out": st.builds(TimedOut, stage=text, limit_s=times_us),
    "incorrect": st.builds(Incorrect, check=text, detail=text, error=st.none() | errors),
    "cheated": st.builds(Cheated, check=text, detail=text),
    "correct": st.builds(Correct, timing=timings, error=errors),
}
checks = st.lists(st.builds(Check, name=text, passed=st.booleans(), detail=text), max_size=3).map(
    tuple
)


def evaluations(kind: str) -> st.SearchStrategy[Evaluation]:
    return st.builds(
        Evaluation,
        verdict=VERDICTS[kind],
        problem=text,
        candidate=text,
        language=st.sampled_from(LANGUAGES),
        ladder=st.sampled_from(LADDER_NAMES),
        device=text,
        track=st.sampled_from(["kernels", "anything"]),
        sandbox=text,
        gates=checks,
        checks=checks,
        library_share=st.none() | st.floats(0.0, 1.0),
        degenerate=st.booleans(),
        timeline_s=st.dictionaries(text, times_us, max_size=2),
    )


def test_every_kind_of_verdict_has_a_strategy_here() -> None:
    assert tuple(sorted(VERDICTS)) == tuple(sorted(VERDICT_KINDS))


@pytest.mark.parametrize("kind", VERDICT_KINDS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_json_text_gives_back_what_it_was_made_of(kind, data) -> None:
    evaluation = data.draw(evaluations(kind))
    record = json.loads(json.dumps(to_json(evaluation), allow_nan=False))
    assert from_json(record) == evaluation
    assert record["kind"] == kind
    assert record.keys() == EvalJson.__annotations__.keys() | TimingJson.__annotations__.keys()


def test_a_timing_has_a_column_for_each_of_its_fields() -> None:
    assert TimingJson.__annotations__.keys() == {
        *(field.name for field in fields(Timing)),
        "sol_share",
    }


def test_a_figure_that_is_not_finite_is_null_and_comes_back_as_infinite() -> None:
    error = NumericError(max_abs=math.nan, rel_norm=math.inf, rho=math.inf)
    verdict = Incorrect(check="values:ties", detail="x", error=error)
    evaluation = Evaluation(
        verdict=verdict,
        problem="p",
        candidate="c",
        language="cpp",
        ladder="strict",
        device="cpu",
    )
    record = to_json(evaluation)
    assert record["error"] == {"max_abs": None, "rel_norm": None, "rho": None}
    back = from_json(record).verdict
    assert isinstance(back, Incorrect)
    assert back.error == NumericError(max_abs=math.inf, rel_norm=math.inf, rho=None)


def test_only_a_correct_candidate_has_times() -> None:
    evaluation = Evaluation(
        verdict=Crashed(stage="timing", log="first\nlast"),
        problem="p",
        candidate="c",
        language="cpp",
        ladder="strict",
        device="cpu",
    )
    record = to_json(evaluation)
    assert {record[name] for name in TimingJson.__annotations__} == {None}
    assert record["stage"] == "timing"
    assert record["reason"] == "timing: last"


def test_another_schema_or_a_correct_one_without_its_error_is_refused() -> None:
    record = to_json(
        Evaluation(
            verdict=Cheated(check="two_clocks", detail="x"),
            problem="p",
            candidate="c",
            language="cpp",
            ladder="strict",
            device="cpu",
        )
    )
    with pytest.raises(ValueError, match="eval schema 2 is not 1"):
        from_json({**record, "schema": 2})
    with pytest.raises(ValueError, match="without `error`"):
        from_json({**record, "kind": "correct"})


def slow_record(*checks: Check) -> EvalJson:
    return to_json(
        Evaluation(
            verdict=Crashed(stage="timing", log="x"),
            problem="p",
            candidate="c",
            language="cpp",
            ladder="strict",
            device="cpu",
            checks=checks,
        )
    )


def test_a_baseline_that_could_not_be_measured_is_said_with_its_reason() -> None:
    record = slow_record(
        Check(name="baseline:compile", passed=False, detail="not measured: no compiler"),
        Check(name="two_clocks", passed=False, detail="x"),
        Check(name="baseline:max_autotune", passed=False, detail="not measured: timed_out"),
    )
    assert missing_baselines(record) == [
        "compile: not measured: no compiler",
        "max_autotune: not measured: timed_out",
    ]
    assert missing_baselines(slow_record()) == []


def test_a_record_from_before_there_were_protocols_was_raced() -> None:
    error = NumericError(max_abs=0.0, rel_norm=0.0, rho=None)
    timing = Timing(
        time_us=1.0,
        time_ci_us=(1.0, 1.0),
        baseline="eager",
        baseline_us=2.0,
        speedup=2.0,
        speedup_ci=(1.9, 2.1),
        eager_us=2.0,
        compile_us=None,
        protocol="do_bench",
    )
    verdict = Correct(timing=timing, error=error)
    record = to_json(
        Evaluation(
            verdict=verdict,
            problem="p",
            candidate="c",
            language="cpp",
            ladder="strict",
            device="cpu",
        )
    )
    assert record["protocol"] == "do_bench"
    older = {name: value for name, value in record.items() if name != "protocol"}
    back = from_json(older).verdict  # type: ignore[arg-type]
    assert isinstance(back, Correct)
    assert back.timing.protocol == "abba"
