"""`kopt stats`: its tables, its JSON, and what it says of runs that are not whole."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kopt.analysis.config import StatsConfig
from kopt.analysis.proportion import Share
from kopt.cli import main
from kopt.cli.columns import columns
from kopt.cli.fleet_tables import fleet_tables
from kopt.cli.job import Job, JobOutcome
from kopt.cli.stats_figures import between, chance, letter, percent_between, times
from kopt.config import load, to_plain
from kopt.data.fold import fold
from kopt.data.journal import Journal
from kopt.data.lock import RunLock
from kopt.data.manifest import make_manifest
from kopt.data.rundir import RunDir
from kopt.events import RunEnded, SearchEnded
from kopt.problem import Problem
from kopt.testing.fakes import ManualClock, correct, source_candidate
from kopt.testing.sample_journal import write_search
from kopt.verdict import Incorrect

BUDGET = SearchEnded(reason="budget", failed=False)
WRONG = Incorrect(check="values", detail="no")
LONG = "an-arm-of-a-name-that-is-rather-long-openai"


def make_run(
    folder: Path,
    arms: dict[str, Sequence[float | None]],
    *,
    end: SearchEnded | None = BUDGET,
    **config: Any,
) -> str:
    """A run that searched a problem for each speed-up; None is a candidate that is wrong."""
    run = RunDir(folder)
    run.path.mkdir(parents=True)
    settings = load({"problem": "set/x", "device": "cpu", **config})
    device = {"kind": "cpu", "name": "a CPU", "arch": "x86_64", "count": 1}
    run.write_manifest(
        make_manifest(to_plain(settings), name=run.name, created_ns=0, argv=["kopt"], device=device)
    )
    with Journal(run.path, run=run.name, clock=ManualClock()) as sink:
        for arm, speedups in arms.items():
            for number, speedup in enumerate(speedups):
                problem = Problem(name=f"set/p{number}", source=f"class Model: ... # {number}\n")
                run.keep_problem(problem)
                verdict = WRONG if speedup is None else correct(speedup)
                slots = [[(source_candidate(f"{arm} {number}"), verdict)]]
                write_search(sink, problem=problem, arm=arm, expansions=slots, end=end)
        if end is not None:
            sink.append("", RunEnded(failed=0))
    return str(run.path)


def printed(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["stats", *arguments]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return out


def refused(capfd: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The lines of an answer with exit code 2."""
    assert main(["stats", *arguments]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    return [line.removeprefix("kopt: ") for line in err.splitlines()]


def test_tables_fit_into_80_columns_and_name_every_arm(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    speedups = [1234.5, 2.0, None, 1.3, 0.9, 700.0, 1.0, 5.0]
    fast = [1000.0 + n for n in range(8)]
    run = make_run(tmp_path / "first", {LONG: speedups, "greedy": speedups[::-1], "c": fast})
    out = printed(capfd, run, "--cap", "20", "--at", "1000", "--over-seeds", "best")
    assert max(map(len, out.splitlines())) <= 80
    assert f"A  {LONG}: 8 problem(s), 1 seed" in out
    assert "ladder strict, cpu (a CPU), over the faster of eager and compile" in out
    assert "nan" not in out.lower()
    assert "A : B" in out
    assert "Holm" in out


def test_a_multirun_ends_with_the_tables_of_its_arms(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folders = [make_run(tmp_path / name, {name: [2.0, None, 30.0]}) for name in ("mcts", "greedy")]
    outcomes = [
        JobOutcome(
            job=Job(
                config=load({"problem": "set/x"}),
                problems=(),
                run_dir=RunDir(folder),
                observer=lambda search, event: None,
            ),
            state=fold([]),
        )
        for folder in folders
    ]
    stats = StatsConfig(over_seeds="best", cap=20.0)
    tables = fleet_tables(tmp_path, outcomes, stats=stats)
    command = f"{tmp_path} --over-seeds best --cap 20"
    assert tables.endswith(f"\nstatistics: kopt stats {command}\nfolder: {tmp_path}\n")
    # The command says the same: by then the runs are found in the folder, in another order.
    arms = [line for line in tables.splitlines() if "search(es)" in line]
    assert [line.split(":")[0] for line in arms] == ["A  mcts", "B  greedy"]
    assert "Wilcoxon" in tables
    assert "Wilcoxon" in printed(capfd, *command.split())


def test_a_multirun_in_which_no_search_has_ended_says_so(tmp_path: Path) -> None:
    run = RunDir(make_run(tmp_path / "0", {"mcts": [2.0]}, end=None))
    job = Job(
        config=load({"problem": "set/x"}),
        problems=(),
        run_dir=run,
        observer=lambda search, event: None,
    )
    tables = fleet_tables(tmp_path, [JobOutcome(job=job, state=fold([]))], stats=StatsConfig())
    assert "note: no search to count: expected one that has ended\n" in tables


def test_json_has_every_figure_and_no_nan(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first = make_run(tmp_path / "a", {"mcts": [4.0, 2.0, None]}, search={"kind": "mcts"})
    second = make_run(tmp_path / "b", {"greedy": [2.0, 2.0, None]}, search={"kind": "greedy"})
    out = printed(capfd, first, second, "--json")
    record = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))
    assert (record["schema"], record["over_seeds"], record["notes"]) == (1, "mean", [])
    assert [run["status"] for run in record["runs"]] == ["ended", "ended"]
    (stratum,) = record["strata"]
    mcts, greedy = stratum["arms"]
    assert mcts["means"][0]["geomean"] == pytest.approx(2.0)  # (4 · 2 · 1)^(1/3)
    assert greedy["means"][0]["solved_only"] == pytest.approx(2.0)
    assert [each["cap"] for each in mcts["means"]] == [None, 50, 25, 20, 10, 5]
    (comparison,) = stratum["comparisons"]
    assert comparison["ratio"] == pytest.approx(2 ** (1 / 3))
    assert comparison["test"]["num"] == 1
    assert [each["speedup"] for each in record["searches"]] == [4.0, 2.0, None, 2.0, 2.0, None]


def test_a_folder_of_runs_is_its_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "runs" / "a", {"mcts": [4.0]})
    make_run(tmp_path / "runs" / "b", {"greedy": [2.0]})
    (tmp_path / "runs" / "sweeps").mkdir()
    record = json.loads(printed(capfd, str(tmp_path / "runs"), "--json"))
    assert [run["label"] for run in record["runs"]] == ["a", "b"]


def test_a_run_named_twice_is_counted_once_and_equal_names_are_told_by_path(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first = make_run(tmp_path / "x" / "a", {"mcts": [4.0]})
    second = make_run(tmp_path / "y" / "a", {"greedy": [2.0]})
    record = json.loads(printed(capfd, first, second, first, "--json"))
    assert [run["label"] for run in record["runs"]] == [first, second]
    assert record["notes"] == [f"{first}: the same run as {first}; counted once"]


def test_searches_that_have_not_ended_are_left_out_and_can_be_counted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = make_run(tmp_path / "whole", {"mcts": [4.0]})
    killed = make_run(tmp_path / "killed", {"greedy": [2.0]}, end=None)
    record = json.loads(printed(capfd, whole, killed, "--json"))
    assert record["notes"] == [
        f"run killed was interrupted; `kopt resume {killed}` finishes it",
        "run killed: 1 of 1 search(es) have not ended: left out (--unfinished counts them)",
    ]
    assert [run["left_out"] for run in record["runs"]] == [0, 1]
    record = json.loads(printed(capfd, whole, killed, "--json", "--unfinished"))
    assert len(record["searches"]) == 2
    assert "counted as they are" in record["notes"][1]


def test_a_run_that_still_goes_on_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "first", {"mcts": [4.0]})
    lock = RunLock(Path(run))
    try:
        assert printed(capfd, run).splitlines()[0] == "note: run first still goes on"
    finally:
        lock.release()


def test_where_nothing_can_be_counted_a_line_says_why(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    killed = make_run(tmp_path / "killed", {"greedy": [2.0]}, end=None)
    empty = make_run(tmp_path / "empty", {})
    lines = refused(capfd, empty, killed)
    assert lines[0] == "run empty: no search to count (1 events)"
    assert lines[-1] == "no search to count: expected one that has ended"


def test_what_is_no_run_or_of_another_version_or_damaged_is_refused_in_a_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert refused(capfd, str(tmp_path / "none")) == [
        f"{tmp_path / 'none'}: expected a run folder, found no manifest.json in it"
    ]
    run = RunDir(make_run(tmp_path / "first", {"mcts": [4.0]}))
    (part,) = (run.path / "journal").glob("*.parquet")
    whole = part.read_bytes()
    part.write_bytes(whole[:100])
    (line,) = refused(capfd, str(run.path))
    assert line.startswith(f"cannot use {part}: not a journal part")
    part.write_bytes(whole)
    run.write_manifest({**run.read_manifest(), "schema": 7})
    (line,) = refused(capfd, str(run.path))
    assert line.endswith("expected a run of schema 1, found 7; read it with the kopt that wrote it")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--cap", "1"], "--cap: expected a number above 1, found 1"),
        (["--cap", "nan"], "--cap: expected a number above 1, found nan"),
        (["--at", "0"], "--at: expected 1 or more, found 0"),
        (["--bootstrap-seed", "-1"], "--bootstrap-seed: expected 0 or more, found -1"),
        (["--control", "mct"], "--control mct: no such arm; did you mean mcts?"),
    ],
)
def test_a_wrong_argument_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    run = make_run(tmp_path / "first", {"mcts": [4.0]})
    assert refused(capfd, run, *arguments) == [line]


def test_an_arm_of_two_settings_is_told_apart(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first = make_run(tmp_path / "a", {"mcts": [4.0]}, search={"kind": "mcts", "iterations": 5})
    second = make_run(tmp_path / "b", {"mcts": [2.0]}, search={"kind": "mcts", "iterations": 9})
    out = printed(capfd, first, second)
    assert out.startswith("note: arm mcts is told apart as mcts(search.iterations=5),")
    assert "settings differ (search.iterations)" in out
    assert "A  mcts: 1 problem(s), 2 seeds" in printed(capfd, first, second, "--pool")


def test_another_baseline_than_the_recorded_one_can_be_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "first", {"mcts": [4.0]})
    assert "over eager, timed by" in printed(capfd, run, "--baseline", "eager")
    assert refused(capfd, run, "--baseline", "compile")[0] == (
        "run first: 1 search(es) have correct candidates without a speed-up over compile: left out"
    )


def test_figures_are_short_and_unknown_ones_are_a_dash() -> None:
    assert [times(v) for v in (None, 1.256, 88.63, 123.45)] == ["-", "1.26", "88.63", "123"]
    assert [chance(p) for p in (None, 0.00001, 0.0007, 0.035, 0.181, 1.0)] == [
        "-",
        "<0.0001",
        "0.0007",
        "0.035",
        "0.18",
        "1.00",
    ]
    assert (between(None), between((1.0, 2.5))) == ("-", "[1.00, 2.50]")
    assert percent_between(Share(share=0.38, low=0.26, high=0.52, num=50)) == "38 [26,52]"
    assert [letter(n) for n in (0, 25, 26)] == ["A", "Z", "A1"]


def test_columns_align_words_to_the_left_and_numbers_to_the_right() -> None:
    assert columns([("a", "1"), ("bb", "22")]) == ["a    1", "bb  22"]
    assert columns([]) == []
