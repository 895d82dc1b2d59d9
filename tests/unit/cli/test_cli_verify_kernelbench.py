"""Which folder is what, and what becomes of a KernelBench sample's claim."""

import json
from io import StringIO
from pathlib import Path

import pytest

from kopt.cli.verify import plan_of, rescoring_config
from kopt.cli.verify_rescored import (
    Rescoring,
    Scored,
    closing_text,
    scored_text,
    standing_of,
    write_results,
)
from kopt.data.kernelbench_runs import UNKNOWN, Claim, samples_in
from kopt.errors import ConfigError
from kopt.evaluation import EvalJson, to_json
from kopt.problem import Problem
from kopt.testing.fakes import correct, evaluation_of, source_candidate
from kopt.verdict import Incorrect

WON = Claim(kind="win", runtime_ms=1.0, speedup=2.0, hardware="NVIDIA H200")
RIGHT = Claim(kind="correct", runtime_ms=1.0)
FAILED = Claim(kind="failed")


def record(verdict) -> EvalJson:
    problem = Problem(name="kernelbench/level1/1", source="class Model: ...\n")
    candidate = source_candidate("class ModelNew: ...\n")
    return to_json(evaluation_of(verdict, problem=problem, candidate=candidate))


FASTER, SLOWER = record(correct(2.0)), record(correct(0.8))
WRONG = record(Incorrect(check="values:ties#0", detail="expected 1, found 0"))


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "KernelBench"
    for level in (1, 2, 3):
        (folder / "KernelBench" / f"level{level}").mkdir(parents=True)
    (folder / "KernelBench" / "level1" / "1_Relu.py").write_text("class Model: ...\n")
    return folder


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    for number in (0, 1):
        (folder / f"level_1_problem_1_sample_{number}_kernel.py").write_text("class ModelNew: ...")
    return folder


def test_samples_and_clone_may_stand_in_either_place(samples: Path, clone: Path) -> None:
    either = plan_of([str(samples), str(clone)])
    assert either == plan_of([str(clone), str(samples)])
    assert (either.samples, either.clone, either.run) == (samples, clone, None)
    assert plan_of([str(samples)]).clone is None


def test_folders_that_do_not_go_together_are_refused(samples: Path, clone: Path) -> None:
    run = samples.parent / "run"
    (run / "journal").mkdir(parents=True)
    with pytest.raises(ConfigError, match="holds no samples; leave it out"):
        plan_of([str(run), str(clone)])
    with pytest.raises(ConfigError, match="holds no samples; expected a run folder"):
        plan_of([str(clone)])
    with pytest.raises(ConfigError, match="both of one kind"):
        plan_of([str(samples), str(samples)])
    both = plan_of([str(run), str(samples)])
    assert (both.run, both.samples) == (run, samples)


@pytest.mark.parametrize(
    ("claim", "found", "standing"),
    [
        (WON, FASTER, "holds"),
        (WON, SLOWER, "vanished"),
        (WON, WRONG, "vanished"),
        (RIGHT, SLOWER, "holds"),
        (RIGHT, WRONG, "vanished"),
        (FAILED, FASTER, "new"),
        (FAILED, WRONG, "failed"),
        (UNKNOWN, FASTER, "win"),
        (UNKNOWN, SLOWER, "correct"),
        (UNKNOWN, WRONG, "failed"),
    ],
)
def test_what_becomes_of_a_claim(claim: Claim, found: EvalJson, standing: str) -> None:
    assert standing_of(claim, found)[0] == standing


def test_why_a_win_vanishes_is_said() -> None:
    assert standing_of(WON, WRONG)[1] == "incorrect: values:ties#0: expected 1, found 0"
    assert standing_of(WON, SLOWER)[1] == "no faster than eager"
    # Against compile, what it is over eager is said too: 250 us over eager, 125 us itself.
    beside = {**SLOWER, "baseline": "compile", "eager_us": 250.0, "time_us": 125.0}
    assert standing_of(WON, beside)[1] == "no faster than compile (2.00x over eager)"


def test_results_are_written_in_both_forms_and_the_claims_are_left_alone(samples: Path) -> None:
    claims = samples / "eval_results.json"
    claims.write_text("{}")
    listed = samples_in(samples)
    rescoring = Rescoring(
        folder=samples,
        out=samples / "kopt",
        ladder="kernelbench",
        samples=listed,
        claims=dict.fromkeys(listed, WON),
        show=StringIO(),
        device="NVIDIA H200",
    )
    for position, found in enumerate((FASTER, WRONG)):
        standing, why = standing_of(WON, found)
        rescoring.scored[position] = Scored(
            sample=listed[position], claim=WON, found=found, standing=standing, why=why
        )
    write_results(rescoring)
    theirs = json.loads((samples / "kopt" / "eval_results.json").read_text())
    assert [(entry["sample_id"], entry["correctness"]) for entry in theirs["1"]] == [
        (0, True),
        (1, False),
    ]
    ours = json.loads((samples / "kopt" / "kopt_results.json").read_text())
    assert [row["standing"] for row in ours["results"]] == ["holds", "vanished"]
    assert not ours["holds"]
    assert claims.read_text() == "{}"
    assert "VANISHED: incorrect" in scored_text(rescoring.scored[1])
    assert "2 of 2 sample(s) judged (ladder kernelbench, NVIDIA H200)" in closing_text(rescoring)


def test_a_rescoring_takes_kernelbenchs_tolerances_and_the_runs_precision(
    samples: Path, clone: Path
) -> None:
    (samples / "generation_config.yaml").write_text("level: 1\nprecision: bf16\n")
    config = rescoring_config(samples, ["device=cpu"], clone=clone)
    assert config.evaluate.ladder == "kernelbench"
    assert config.problems.dtype == "bfloat16"
    assert config.problems.kernelbench.path == str(clone)
    stricter = rescoring_config(samples, ["evaluate=strict", "problems.dtype=null"], clone=clone)
    assert stricter.evaluate.ladder == "strict"
    assert stricter.problems.dtype is None
