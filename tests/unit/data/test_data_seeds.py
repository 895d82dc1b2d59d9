"""Seeds come from candidate files and the best of earlier runs, and are found ahead."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.data.journal import Journal
from kopt.data.rundir import RunDir
from kopt.data.seeds import keep_seeds, kept_seeds, resolve_seeds
from kopt.errors import ConfigError, StoreError
from kopt.problem import Problem
from kopt.testing.fakes import ManualClock, correct, source_candidate
from kopt.testing.sample_journal import write_search
from kopt.verdict import CompileFailed

ONE = Problem(name="set/one", source="# one")
TWO = Problem(name="set/two", source="# two")
TORCH = "from torch import nn\n\n\nclass ModelNew(nn.Module):\n    pass\n"
TRITON = "import triton\nfrom torch import nn\n\n\nclass ModelNew(nn.Module):\n    pass\n"


def run_with(folder: Path, problem: Problem, *speedups: float | None) -> Path:
    """A run with a candidate of each speed-up; None did not compile."""
    slots = [
        (
            source_candidate(f"# {problem.name} {s}", strategy=f"idea {s}", language="cpp"),
            CompileFailed(stage="build", log="") if s is None else correct(s),
        )
        for s in speedups
    ]
    with Journal(folder, run=folder.name, clock=ManualClock()) as journal:
        write_search(journal, problem=problem, expansions=[slots])
    RunDir(folder).write_manifest({})
    return folder


def resolve(*paths: Path | str, problems: tuple[Problem, ...] = (ONE, TWO)):
    said: list[str] = []
    seeds = resolve_seeds([str(path) for path in paths], problems, warn=said.append)
    return {problem.name: seeds.get(problem.problem_id, ()) for problem in problems}, said


def test_a_file_is_a_seed_of_every_problem_in_the_language_of_its_text(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TORCH)
    (tmp_path / "b.py").write_text(TRITON)
    seeds, said = resolve(tmp_path / "a.py", tmp_path / "b.py", tmp_path / "a.py")
    assert said == []
    for given in seeds.values():
        assert [(seed.language, seed.strategy) for seed in given] == [
            ("torch", "a.py"),
            ("triton", "b.py"),
        ]
        assert {(seed.programmer, seed.parent) for seed in given} == {("seed", None)}


def test_the_kernel_that_a_problem_comes_with_is_its_first_seed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TORCH)
    given = replace(TWO, given=TRITON)
    seeds, said = resolve(tmp_path / "a.py", problems=(ONE, given))
    assert said == []
    assert [seed.language for seed in seeds[ONE.name]] == ["torch"]
    assert [(seed.language, seed.source) for seed in seeds[TWO.name]] == [
        ("triton", TRITON),
        ("torch", TORCH),
    ]


def test_a_run_gives_the_best_of_each_problem_as_it_was_judged(tmp_path: Path) -> None:
    run = run_with(tmp_path / "first", ONE, 1.5, 3.0, None, 2.0)
    seeds, said = resolve(run)
    (seed,) = seeds["set/one"]
    assert seed.source == "# set/one 3.0"
    assert seed.language == "cpp"
    assert seed.strategy == "best of first: idea 3.0"
    assert seeds["set/two"] == ()
    assert said == [f"search.seeds: {run} has no correct candidate of set/two"]


def test_a_run_without_a_correct_candidate_is_said(tmp_path: Path) -> None:
    run = run_with(tmp_path / "first", ONE, None)
    seeds, said = resolve(run, problems=(ONE,))
    assert seeds == {"set/one": ()}
    assert said == [f"search.seeds: {run} has no correct candidate of set/one"]


def test_a_problem_of_the_same_name_will_do_and_is_said(tmp_path: Path) -> None:
    run = run_with(tmp_path / "first", ONE, 2.0)
    half = Problem(name=ONE.name, source=ONE.source, dtype="float16")
    seeds, said = resolve(run, problems=(half,))
    assert len(seeds["set/one"]) == 1
    (line,) = said
    assert "searched set/one with another source or dtype" in line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        (b"def ModelNew(", "expected a Python module that defines ModelNew"),
        (b"class Model: ...", "expected a Python module that defines ModelNew"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_a_path_that_is_no_seed_is_one_line(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "seed.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=words) as caught:
        resolve(path)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_no_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a run folder"):
        resolve(tmp_path)


def test_a_run_folder_keeps_its_seeds(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TORCH)
    seeds = resolve_seeds([str(tmp_path / "a.py")], [ONE], warn=print)
    run = RunDir(tmp_path)
    assert kept_seeds(run) is None
    keep_seeds(run, seeds)
    assert kept_seeds(run) == seeds
    (tmp_path / "seeds.json").write_text("[1]")
    with pytest.raises(StoreError, match="not a run's seeds"):
        kept_seeds(run)
