"""kopt.load: the best kernel of a run, as a module in a model of the user's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import kopt
from kopt.data.best import write_best
from kopt.data.fleet_file import FleetJob, write_fleet_file
from kopt.data.fold import fold
from kopt.data.journal import Journal, read_events
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError
from kopt.problem import Problem
from kopt.testing.fakes import ManualClock, correct, source_candidate
from kopt.testing.sample_journal import write_search
from kopt.verdict import Crashed, Verdict

REFERENCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x).sum(dim=1)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return [16]
"""
FASTER = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.inner = nn.Linear(size, size)

    def forward(self, x):
        return x @ self.inner.weight.sum(dim=0) + self.inner.bias.sum()
"""
PROBLEM = Problem(name="mine/linear sum", source=REFERENCE)
OTHER = Problem(name="mine/other", source=REFERENCE + "\n# another\n")


def run_of(
    folder: Path,
    *verdicts: Verdict,
    source: str = FASTER,
    problem: Problem = PROBLEM,
    config: dict[str, object] | None = None,
) -> Path:
    """A run folder that ended, with a candidate for each verdict."""
    run = RunDir(folder)
    run.path.mkdir(exist_ok=True, parents=True)
    run.keep_problem(problem)
    slots = [
        [(source_candidate(source + "\n" * number), verdict)]
        for number, verdict in enumerate(verdicts)
    ]
    with Journal(folder, run="run", clock=ManualClock()) as sink:
        write_search(sink, problem=problem, seed=0, expansions=slots)
    if config is not None:
        run.write_manifest({"config": config})
    write_best(run, fold(read_events(folder)))
    run.results_path.touch()
    return folder


def error_of(*arguments: object, **options: object) -> str:
    with pytest.raises(ConfigError) as caught:
        kopt.load(*arguments, **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_importing_kopt_imports_neither_torch_nor_the_actors() -> None:
    code = (
        "import kopt, sys; kopt.load; print([n for n in sys.modules if n[:5] in ('torch', 'ray')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_kernel_takes_the_place_of_a_module_in_a_model(tmp_path: Path) -> None:
    run = run_of(tmp_path, correct(2.0))
    part: dict[str, type[nn.Module]] = {}
    exec(REFERENCE, part)
    model = nn.Sequential(part["Model"](16))
    inputs = torch.randn(8, 16)
    with torch.no_grad():
        expected = model(inputs)
        model[0] = kopt.load(run, "mine/linear sum", like=model[0])
        torch.testing.assert_close(model(inputs), expected)
    assert type(model[0]).__name__ == "ModelNew"


def test_the_only_problem_of_a_run_needs_no_name(tmp_path: Path) -> None:
    assert type(kopt.load(run_of(tmp_path, correct(2.0)))).__name__ == "ModelNew"


def test_another_shape_than_the_judged_one_is_refused_unless_asked_for(tmp_path: Path) -> None:
    run = run_of(tmp_path, correct(2.0))
    other = torch.randn(9, 16)
    with pytest.raises(ConfigError, match=r"judged on \(float32 \(8, 16\)\), found .*\(9, 16\)"):
        kopt.load(run)(other)
    with torch.no_grad():
        assert kopt.load(run, any_shape=True)(other).shape == (9,)


def test_a_transposed_view_is_laid_out_as_it_was_judged(tmp_path: Path) -> None:
    source = FASTER.replace("return x @", "assert x.is_contiguous()\n        return x @")
    module = kopt.load(run_of(tmp_path, correct(2.0), source=source))
    inputs = torch.randn(16, 8).T
    with torch.no_grad():
        torch.testing.assert_close(module(inputs), module.inner(inputs).sum(dim=1))
        torch.testing.assert_close(module(x=inputs), module(inputs))  # by name, too


def test_another_dtype_is_refused_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"found \(float64"):
        kopt.load(run_of(tmp_path, correct(2.0)))(torch.randn(8, 16, dtype=torch.float64))


def test_the_rank_and_the_constructor_s_arguments_can_be_given(tmp_path: Path) -> None:
    run = run_of(tmp_path, correct(2.0), correct(3.0))
    module = kopt.load(run, rank=2, init=[4], any_shape=True)
    assert module.inner.weight.shape == (4, 4)
    assert "rank 9" in error_of(run, rank=9)


def test_who_names_no_run_or_problem_is_told_what_there_is(tmp_path: Path) -> None:
    assert "expected a run folder, found none" in error_of(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    assert "expected a run folder" in error_of(tmp_path / "empty")
    run = run_of(tmp_path / "run", correct(2.0))
    assert "no problem 'x'; there are: mine/linear sum" in error_of(run, "x")
    RunDir(run).keep_problem(OTHER)
    assert "several problems; name one of: mine/linear sum, mine/other" in error_of(run)
    assert "found no correct kernel for mine/other" in error_of(run, "mine/other")


def test_nothing_that_is_faster_is_loaded_only_when_asked_for_by_rank(tmp_path: Path) -> None:
    run = run_of(tmp_path, correct(0.8))
    assert "nothing faster" in error_of(run)
    assert "0.80x" in error_of(run)
    assert kopt.load(run, rank=1) is not None


def test_a_run_without_a_correct_kernel_says_so(tmp_path: Path) -> None:
    run = run_of(tmp_path, Crashed(stage="correctness", log=""))
    assert "found no correct kernel" in error_of(run)


def test_a_run_that_goes_on_says_that_it_has_not_ended(tmp_path: Path) -> None:
    run = run_of(tmp_path, Crashed(stage="correctness", log=""))
    RunDir(run).results_path.unlink()
    assert "has not ended" in error_of(run)


def test_one_of_several_arms_is_chosen_and_of_one_arm_the_fastest(tmp_path: Path) -> None:
    run_of(tmp_path / "0", correct(2.0))
    run_of(tmp_path / "1", correct(3.0), source=FASTER + "\n# the faster\n")
    run_of(tmp_path / "2", correct(9.0))
    jobs = [
        FleetJob(folder=str(number), arm=arm, overrides=())
        for number, arm in enumerate(["mcts", "mcts", "beam"])
    ]
    write_fleet_file(tmp_path, jobs)
    assert "several arms; pass arm= one of: beam, mcts" in error_of(tmp_path)
    assert "no arm 'x'; there are: beam, mcts" in error_of(tmp_path, arm="x")
    module = kopt.load(tmp_path, arm="mcts")
    path = sys.modules[type(module).__module__].__file__
    assert path == str(tmp_path / "1" / "best" / "mine-linear-sum" / "rank1.py")


def test_a_state_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    assert "does not fit" in error_of(run_of(tmp_path, correct(2.0)), like=nn.Linear(3, 3))


def test_a_file_that_does_not_import_here_is_named_in_a_line(tmp_path: Path) -> None:
    text = error_of(run_of(tmp_path, correct(2.0), source="raise OSError('a\\nb')"))
    assert "rank1.py does not import here: OSError: a b" in text


def test_a_mode_that_changes_the_result_has_to_be_the_judged_one(tmp_path: Path) -> None:
    with_norm = REFERENCE.replace("nn.Linear(size, size)", "nn.BatchNorm1d(size)")
    source = with_norm.replace("class Model(", "class ModelNew(")
    problem = Problem(name="norm", source=with_norm)
    run = run_of(tmp_path, correct(2.0), source=source, problem=problem)
    part: dict[str, type[nn.Module]] = {}
    exec(with_norm, part)
    like = part["Model"](16)
    assert kopt.load(run, like=like).training
    assert "evaluate.module_mode=eval" in error_of(run, like=like.eval())
    RunDir(run).write_manifest({"config": {"evaluate": {"module_mode": "eval"}}})
    assert not kopt.load(run, like=like).training


def test_a_dtype_that_the_problem_was_cast_to_is_the_module_s(tmp_path: Path) -> None:
    problem = Problem(name="cast", source=REFERENCE, dtype="bfloat16")
    module = kopt.load(run_of(tmp_path, correct(2.0), problem=problem))
    assert module.inner.weight.dtype == torch.bfloat16
    with torch.no_grad():
        assert module(torch.randn(8, 16, dtype=torch.bfloat16)).shape == (8,)


def test_who_trains_through_a_kernel_without_a_derivative_is_warned_once(tmp_path: Path) -> None:
    source = FASTER.replace("return x @", "x = x.detach()\n        return x.detach() @").replace(
        "self.inner.weight.sum(dim=0) + self.inner.bias",
        "self.inner.weight.detach().sum(0) + 0 * x",
    )
    module = kopt.load(run_of(tmp_path, correct(2.0), source=source))
    inputs = torch.randn(8, 16, requires_grad=True)
    with pytest.warns(UserWarning, match="no gradient passes through it") as caught:
        [module(inputs) for _ in range(2)]
    assert len(caught) == 1


def test_a_kernel_of_a_gpu_is_refused_on_a_cpu(tmp_path: Path) -> None:
    run = run_of(tmp_path, correct(2.0))
    path = run / "best" / "mine-linear-sum" / "rank1.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "device": "NVIDIA H200"}))
    assert "was written for NVIDIA H200, found cpu" in error_of(run, device="cpu")


def test_the_how_to_beside_the_kernel_names_the_run_and_the_problem(tmp_path: Path) -> None:
    run = run_of(tmp_path, correct(2.0))
    text = (run / "best" / "mine-linear-sum" / "README.txt").read_text()
    assert f'kopt.load("{run}", "mine/linear sum", like=model.part)' in text
