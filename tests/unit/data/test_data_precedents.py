"""Precedents: the most similar past problem, never the problem itself, whatever is damaged."""

from pathlib import Path

import pytest

from kopt.data.fold import fold
from kopt.data.journal import Journal
from kopt.data.journal_files import JOURNAL_FOLDER, part_path, read_events
from kopt.data.memory_json import precedent_from_json, values_of
from kopt.data.precedents import PastRuns
from kopt.data.results import write_results
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError
from kopt.events import SearchEnded
from kopt.memory.precedent import PastStep
from kopt.problem import Problem
from kopt.testing.fakes import ManualClock, correct, source_candidate
from kopt.testing.sample_journal import write_search

BODY = "class Model:\n    def forward(self, x, y):\n        return (x * 2 + y).relu().sum(dim=-1)\n"
NORM = Problem(name="set/norm", source=BODY + "# a\n    eps = 1e-5\n", family="norm")
CONV = Problem(name="set/conv", source="def conv(a, b, c):\n    return a @ b @ c\n", family="conv")
ASKING = Problem(name="set/other", source=BODY + "    eps = 1e-3\n", family="norm")
FIRST = source_candidate("class ModelNew:\n    first = 1\n", strategy="tile it")
BEST = source_candidate(
    "class ModelNew:\n    best = 1\n", parent=FIRST.candidate_id, strategy="fuse  the\nrows"
)


def past_run(folder: Path, problem: Problem, *, speedup: float = 3.0) -> RunDir:
    """A run that made a problem faster in two steps."""
    run = RunDir(folder)
    run.path.mkdir(parents=True)
    run.keep_problem(problem)
    with Journal(run.path, run=run.name, clock=ManualClock()) as sink:
        write_search(
            sink,
            problem=problem,
            expansions=[[(FIRST, correct(1.2))], [(BEST, correct(speedup))]],
            end=SearchEnded(reason="budget", failed=False),
        )
    write_results(run, fold(read_events(run.path)))
    return run


def runs(folder: Path) -> PastRuns:
    return PastRuns(folder, own=folder / "own")


def test_the_lineage_of_the_fastest_kernel_of_the_same_family_is_found(tmp_path: Path) -> None:
    past_run(tmp_path / "a", NORM)
    past_run(tmp_path / "b", CONV, speedup=9.0)
    found = runs(tmp_path).find(ASKING, on_cpu=True)
    assert found is not None
    assert (found.problem, found.family, found.speedup) == (NORM.problem_id, "norm", 3.0)
    assert found.steps == (
        PastStep(strategy="tile it", kind="correct", speedup=1.2),
        PastStep(strategy="fuse the rows", kind="correct", speedup=3.0),
    )
    assert found.source == BEST.source
    assert 0.5 < found.similarity < 1.0
    assert precedent_from_json(values_of([found])) == found
    assert precedent_from_json([]) is None


def test_of_one_family_the_most_similar_counts_and_then_the_fastest(tmp_path: Path) -> None:
    far = Problem(name="set/far", source="def far(a):\n    return a.mean()\n", family="norm")
    past_run(tmp_path / "a", far, speedup=9.0)
    past_run(tmp_path / "b", NORM, speedup=2.0)
    past_run(tmp_path / "c", NORM, speedup=4.0)
    found = runs(tmp_path).find(ASKING, on_cpu=True)
    assert found is not None
    assert (found.problem, found.speedup) == (NORM.problem_id, 4.0)


def test_the_problem_itself_is_no_precedent_whatever_its_layout_and_name(tmp_path: Path) -> None:
    twin = Problem(name="set/twin", source=ASKING.source + "\n\n# a remark\n", family="norm")
    past_run(tmp_path / "a", ASKING)
    past_run(tmp_path / "b", twin)
    assert runs(tmp_path).find(ASKING, on_cpu=True) is None


@pytest.mark.parametrize("speedup", [0.5, 1.005])
def test_what_was_not_made_faster_beyond_noise_is_no_precedent(
    tmp_path: Path, speedup: float
) -> None:
    run = past_run(tmp_path / "a", CONV, speedup=speedup)
    rows = fold(read_events(run.path))
    assert rows.searches
    asking = Problem(name="x", source="def g(q):\n    return q + 1\n", family="conv")
    found = runs(tmp_path).find(asking, on_cpu=True)
    # The first step, at 1.2, is what the search found.
    assert found is not None
    assert (found.speedup, len(found.steps)) == (1.2, 1)


def test_another_kind_of_problem_or_device_and_the_own_run_are_no_precedents(
    tmp_path: Path,
) -> None:
    past_run(tmp_path / "own", NORM)
    assert runs(tmp_path).find(ASKING, on_cpu=True) is None
    past_run(tmp_path / "a", CONV)
    assert runs(tmp_path).find(ASKING, on_cpu=True) is None
    past_run(tmp_path / "b", NORM)
    assert runs(tmp_path).find(ASKING, on_cpu=False) is None
    assert runs(tmp_path).find(ASKING, on_cpu=True) is not None


def test_what_is_damaged_is_passed_over(tmp_path: Path) -> None:
    broken = past_run(tmp_path / "a", NORM, speedup=9.0)
    part = part_path(broken.path / JOURNAL_FOLDER, 1)
    part.write_bytes(part.read_bytes()[:40])
    torn = past_run(tmp_path / "b", NORM, speedup=8.0)
    torn.results_path.write_bytes(b"no parquet")
    (tmp_path / "no run").mkdir()
    past_run(tmp_path / "c", NORM, speedup=2.0)
    found = runs(tmp_path).find(ASKING, on_cpu=True)
    assert found is not None
    assert found.speedup == 2.0


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a folder of runs"):
        PastRuns(tmp_path / "none", own=tmp_path)
