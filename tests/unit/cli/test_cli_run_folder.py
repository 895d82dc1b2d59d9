"""Commands on a run folder, made by the real driver and journal with an instant evaluator."""

import asyncio
import json
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from kopt.cli import main
from kopt.cli.job import Job
from kopt.cli.plan import known_paces, plan_rows
from kopt.cli.resume import kept_problems, resumed_config
from kopt.cli.sitting import sit
from kopt.cli.summary import summarize, summary_json, summary_text
from kopt.config import RunConfig, load, to_plain
from kopt.data.best import write_best
from kopt.data.fold import RunState, fold
from kopt.data.journal import Journal
from kopt.data.journal_files import read_events
from kopt.data.manifest import make_manifest
from kopt.data.problems import resolve
from kopt.data.results import write_results
from kopt.data.rundir import RunDir
from kopt.driver.loop import Driver, Pace
from kopt.driver.task import SearchSpec, SearchTask
from kopt.errors import ConfigError
from kopt.evaluation import CheckJson, EvalJson
from kopt.ports import Target
from kopt.search.searches import create_search
from kopt.testing.fakes import InstantEvaluator, ManualClock, ScriptedProgrammer

TARGET = Target(device="cpu", name="test", arch="x86_64", languages=("torch",))


def task_of(config: RunConfig, problem_name: str, *, seed: int) -> SearchTask:
    (problem,) = resolve([problem_name], config.problems)
    spec = SearchSpec(
        problem=problem,
        arm=config.arm_name,
        seed=seed,
        policy=config.search.kind,
        policy_config={
            "search": config.search.model_dump(mode="json"),
            "reward": asdict(config.reward.rule()),
        },
    )
    tree = create_search(config.search, rule=config.reward.rule(), seed=seed)
    return SearchTask(spec=spec, tree=tree)


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    return load(
        {
            "problem": ["builtin/softmax", "builtin/layer_norm"],
            "seed": [0, 1],
            "out": str(tmp_path),
            "search": {"kind": "mcts", "iterations": 5, "candidates": 2},
        }
    )


@pytest.fixture
def run(config: RunConfig) -> RunDir:
    clock = ManualClock()
    run = RunDir.create(config.out, "first", clock=clock)
    tasks = [task_of(config, name, seed=seed) for name in config.problem for seed in config.seed]
    with Journal(run.path, run=run.name, clock=clock) as journal:
        for task in tasks:
            run.keep_problem(task.spec.problem)
        driver = Driver(
            tasks,
            programmer=ScriptedProgrammer(),
            evaluator=InstantEvaluator(),
            sink=journal,
            clock=clock,
            target=TARGET,
            pace=Pace(max_in_flight=2),
        )
        asyncio.run(driver.run())
    run.write_manifest(
        make_manifest(to_plain(config), name=run.name, created_ns=clock.now_ns(), argv=["kopt"])
    )
    state = folded(run)
    write_results(run, state)
    write_best(run, state)
    return run


def folded(run: RunDir) -> RunState:
    return fold(read_events(run.path))


def test_replay_agrees_with_what_the_driver_did(run: RunDir, capfd: pytest.CaptureFixture[str]):
    assert main(["replay", str(run.path), "--json"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["same"]
    # 5 expansions of 2 candidates each.
    assert [search["nodes"] for search in record["searches"]] == [10, 10, 10, 10]
    assert main(["replay", str(run.path)]) == 0
    assert "every step is as journalled" in capfd.readouterr().out


def test_a_sitting_shows_what_the_journal_has_once_and_lets_go_of_it(
    run: RunDir, config: RunConfig
) -> None:
    seen: list[str] = []
    job = Job(
        config=config,
        problems=kept_problems(run, config),
        run_dir=run,
        observer=lambda search, event: None,
        recall=lambda search, event: seen.append(event.kind),
    )
    with ExitStack() as stack:
        sitting = sit(job, stack)
    assert sitting.is_over
    assert [len(seen), seen.count("told")] == [sitting.earlier.next_seq, 40]
    sitting.forget()
    assert not sitting.earlier.searches
    assert [task.tree.told() for task in sitting.tasks] == [10, 10, 10, 10]


def test_replay_of_a_damaged_journal_fails(run: RunDir, capfd: pytest.CaptureFixture[str]):
    (part,) = run.path.glob("journal/part-*.parquet")
    part.write_bytes(b"not parquet")
    assert main(["replay", str(run.path)]) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert "part-" in line


def test_the_summary_has_a_row_for_each_problem_and_the_best_file(run: RunDir):
    state = folded(run)
    summaries = summarize(run, state)
    assert [summary.problem for summary in summaries] == ["builtin/softmax", "builtin/layer_norm"]
    for summary in summaries:
        assert summary.candidates == 20
        assert summary.outcome == "optimized"
        assert summary.path is not None
        assert summary.path.is_file()
    text = summary_text(run, summaries)
    assert str(run.path) in text
    assert "over eager" in text
    assert str(run.best_folder / "builtin-softmax" / "rank1.py") in text


def test_the_summary_says_which_baseline_is_missing_and_why(run: RunDir):
    first, *others = summarize(run, folded(run))
    assert first.best is not None
    failed: CheckJson = {
        "name": "baseline:compile",
        "passed": False,
        "detail": "not measured: no compiler",
    }
    best: EvalJson = {**first.best, "checks": [failed]}
    text = summary_text(run, [replace(first, best=best), *others])
    assert f"{first.problem}: no baseline compile: not measured: no compiler" in text
    assert text.count("no baseline") == 1


def test_the_summary_shows_the_baseline_as_the_race_saw_it(run: RunDir):
    first, *_ = summarize(run, folded(run))
    assert first.best is not None
    best: EvalJson = {
        **first.best,
        "baseline": "compile",
        "baseline_us": 4321.5,
        "compile_us": 1234.5,
        "eager_us": 6789.5,
    }
    text = summary_text(run, [replace(first, best=best)])
    assert "4,321.5 us" in text
    assert "6,789.5 us" in text
    assert "1,234.5 us" not in text


def test_the_json_has_the_rows_of_the_results(run: RunDir):
    state = folded(run)
    record = json.loads(json.dumps(summary_json(run, state, summarize(run, state))))
    assert (record["run"], record["ended"], record["failed"]) == ("first", True, 0)
    assert len(record["results"]) == 4
    assert set(record["best"]) == {"builtin/softmax", "builtin/layer_norm"}


def test_a_plan_takes_its_pace_from_earlier_runs(run: RunDir, config: RunConfig):
    problems = resolve(["builtin/softmax", "builtin/huber_loss"], config.problems)
    # The fake takes 0.25 + 0.5 device seconds a candidate.
    assert known_paces(run.path.parent)[problems[0].problem_id] == pytest.approx(0.75, rel=0.2)
    rows = plan_rows(config, problems)
    assert [row.candidates for row in rows] == [20, 20]
    assert rows[0].seconds is not None
    assert rows[1].seconds is None


def test_a_resumed_run_has_its_own_config_and_problems(run: RunDir, config: RunConfig):
    assert resumed_config(run, []) == config
    changed = resumed_config(run, ["limits.wall_s=60", "cluster.num_cpus=1"])
    assert (changed.limits.wall_s, changed.cluster.num_cpus) == (60.0, 1)
    assert [problem.name for problem in kept_problems(run, config)] == list(config.problem)


@pytest.mark.parametrize("override", ["search.candidates=9", "seed=3", "problem=builtin/softmax"])
def test_a_resumed_run_may_not_become_another(run: RunDir, override: str):
    with pytest.raises(ConfigError, match="start a new run"):
        resumed_config(run, [override])


def test_a_run_folder_without_problems_cannot_be_resumed(tmp_path: Path, config: RunConfig):
    run = RunDir.create(tmp_path, "empty", clock=ManualClock())
    with pytest.raises(ConfigError, match="the run never began"):
        kept_problems(run, config)
