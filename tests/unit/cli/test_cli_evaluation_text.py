from dataclasses import replace

from kopt.cli.evaluate import evaluation_text
from kopt.evaluation import Check, Evaluation
from kopt.timing import Timing
from kopt.verdict import CompileFailed, Correct, Incorrect, NumericError, Verdict

TIMING = Timing(
    time_us=50.0,
    time_ci_us=(49.0, 51.0),
    baseline="compile",
    baseline_us=100.0,
    speedup=2.0,
    speedup_ci=(1.9, 2.1),
    eager_us=150.0,
    compile_us=100.0,
)


def text_of(verdict: Verdict, *, checks: tuple[Check, ...] = ()) -> list[str]:
    evaluation = Evaluation(
        verdict=verdict,
        problem="p",
        candidate="c",
        language="cpp",
        ladder="strict",
        device="cpu",
        sandbox="namespace",
        checks=checks,
        timeline_s={"built": 1.0},
    )
    return evaluation_text(evaluation).splitlines()


def test_a_correct_candidate_shows_its_times_and_error():
    error = NumericError(max_abs=1e-6, rel_norm=float("nan"), rho=None)
    lines = text_of(Correct(timing=TIMING, error=error))
    assert lines[0].startswith("correct: 2x [1.9, 2.1] over compile")
    assert "error against float64: max 1e-06, relative norm -, rho -" in lines
    assert [line.split()[0] for line in lines[1:] if line.endswith(" us")] == [
        "candidate",
        "eager",
        "compile",
    ]
    assert lines[-1] == "cpp on cpu, ladder strict, sandbox namespace; seconds: built 1.00"


def test_a_failed_check_is_marked_with_what_was_found():
    checks = (Check(name="shape", passed=True), Check(name="values", passed=False, detail="off"))
    lines = text_of(Incorrect(check="values", detail="off"), checks=checks)
    assert lines[0] == "incorrect: values: off"
    assert "ok   check shape" in lines
    assert "FAIL check values: off" in lines


def test_a_compilers_words_are_shown_as_they_are():
    lines = text_of(CompileFailed(stage="build", log="a.cpp:1: error: x\n1 error"))
    assert lines[:3] == [
        "compile_failed: build: a.cpp:1: error: x",
        "  | a.cpp:1: error: x",
        "  | 1 error",
    ]


def test_times_by_a_published_protocol_are_said_to_be() -> None:
    error = NumericError(max_abs=1e-6, rel_norm=1e-6, rho=None)
    lines = text_of(Correct(timing=replace(TIMING, protocol="do_bench"), error=error))
    assert lines[-1] == (
        "cpp on cpu, ladder strict, timed by do_bench, sandbox namespace; seconds: built 1.00"
    )
