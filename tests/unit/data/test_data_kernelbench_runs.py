"""A KernelBench run folder: its samples, its claims, its result file's form."""

import json
from pathlib import Path

import pytest

from kopt.data.kernelbench_runs import (
    claims_of,
    eval_entry,
    is_kernelbench_run,
    precision_of,
    samples_in,
    write_eval_results,
)
from kopt.errors import StoreError
from kopt.evaluation import to_json
from kopt.problem import Problem
from kopt.testing.fakes import correct, evaluation_of, source_candidate
from kopt.verdict import Cheated, CompileFailed, Crashed

PROBLEM = Problem(name="kernelbench/level1/1", source="class Model: ...\n")
CANDIDATE = source_candidate("class ModelNew: ...\n")


def record(verdict):
    return to_json(evaluation_of(verdict, problem=PROBLEM, candidate=CANDIDATE))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "level_1_problem_10_sample_0_kernel.py",
        "level_1_problem_2_sample_1_kernel.py",
        "level_1_problem_2_sample_0_kernel.py",
        "level_1_problem_2_sample_0_prompt.txt",
    ):
        (tmp_path / name).write_text("class ModelNew: ...")
    return tmp_path


def write_claims(folder: Path, value: object) -> None:
    (folder / "eval_results.json").write_text(json.dumps(value))


def entry(number: int, *, right: bool, runtime: float = -1.0, hardware: str = "H") -> dict:
    return {
        "sample_id": number,
        "compiled": True,
        "correctness": right,
        "metadata": {"hardware": hardware},
        "runtime": runtime,
        "runtime_stats": {},
    }


def test_samples_come_by_problem_and_number(folder: Path, tmp_path: Path) -> None:
    listed = [(sample.problem_id, sample.sample_id) for sample in samples_in(folder)]
    assert listed == [(2, 0), (2, 1), (10, 0)]
    assert samples_in(folder)[0].problem_name == "level1/2"
    assert is_kernelbench_run(folder)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert not is_kernelbench_run(empty)


def test_a_claimed_win_is_faster_than_the_baseline_of_its_own_hardware(
    folder: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    for hardware, mean in (("H", 3.0), ("other", 0.1)):
        path = clone / "results" / "timing" / hardware / "baseline_time_torch.json"
        path.parent.mkdir(parents=True)
        rows = {"2_Sum.py": {"mean": mean, "hardware": hardware}}
        path.write_text(json.dumps({"level1": rows}))
    write_claims(
        folder,
        {
            "2": [entry(0, right=True, runtime=1.5), entry(1, right=False)],
            "10": [entry(0, right=True, runtime=1.0)],
        },
    )
    samples = samples_in(folder)
    claims = claims_of(folder, samples, clone=clone)
    assert [claims[sample].kind for sample in samples] == ["win", "failed", "correct"]
    assert claims[samples[0]].speedup == 2.0  # 3.0 ms / 1.5 ms
    assert claims[samples[2]].speedup is None  # no baseline of problem 10
    assert claims_of(folder, samples, clone=None)[samples[0]].kind == "correct"


def test_nothing_is_claimed_without_a_result_file_or_over_several_levels(folder: Path) -> None:
    samples = samples_in(folder)
    assert {claim.kind for claim in claims_of(folder, samples, clone=None).values()} == {"unknown"}
    write_claims(folder, {"2": [entry(0, right=True)]})
    (folder / "level_2_problem_2_sample_0_kernel.py").touch()
    samples = samples_in(folder)
    assert {claim.kind for claim in claims_of(folder, samples, clone=None).values()} == {"unknown"}


def test_older_result_files_have_one_object_a_problem(folder: Path) -> None:
    write_claims(folder, {"2": entry(0, right=True), "10": entry(0, right=False)})
    samples = samples_in(folder)
    claims = claims_of(folder, samples, clone=None)
    assert [claims[sample].kind for sample in samples] == ["correct", "unknown", "failed"]


@pytest.mark.parametrize("text", ["{", "[]", '{"x": [{}]}', '{"1": [3]}'])
def test_a_damaged_result_file_is_one_error(folder: Path, text: str) -> None:
    (folder / "eval_results.json").write_text(text)
    with pytest.raises(StoreError, match=r"eval_results\.json: not KernelBench's results"):
        claims_of(folder, samples_in(folder), clone=None)


def test_verdicts_take_kernelbenchs_form() -> None:
    right = eval_entry(3, record(correct(2.0)))
    # The fake's baseline is 100 us: 50 us at 2x are 0.05 ms.
    assert right["runtime"] == pytest.approx(0.05)
    assert (right["sample_id"], right["compiled"], right["correctness"]) == (3, True, True)
    assert set(right) == {
        "sample_id",
        "compiled",
        "correctness",
        "metadata",
        "runtime",
        "runtime_stats",
    }
    cheated = eval_entry(0, record(Cheated(check="two_clocks", detail="they disagree")))
    assert (cheated["compiled"], cheated["correctness"], cheated["runtime"]) == (True, False, -1.0)
    assert cheated["metadata"]["correctness_issue"] == "two_clocks: they disagree"
    unbuilt = eval_entry(0, record(CompileFailed(stage="build", log="error: no")))
    assert not unbuilt["compiled"]
    assert unbuilt["metadata"]["compilation_error"] == "error: no"
    assert not eval_entry(0, record(Crashed(stage="import", log="died")))["compiled"]
    assert eval_entry(0, record(Crashed(stage="correctness", log="died")))["compiled"]


def test_a_result_file_has_its_problems_in_order(tmp_path: Path) -> None:
    path = tmp_path / "new" / "eval_results.json"
    write_eval_results(path, {10: [entry(0, right=True)], 2: [entry(1, right=True)]})
    assert list(json.loads(path.read_text())) == ["2", "10"]


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("precision: fp32\n", None), ("a: 1\nprecision: 'bf16'\n", "bfloat16"), ("", None)],
)
def test_the_precision_is_the_runs_own(tmp_path: Path, text: str, dtype: str | None) -> None:
    (tmp_path / "generation_config.yaml").write_text(text)
    assert precision_of(tmp_path) == dtype
