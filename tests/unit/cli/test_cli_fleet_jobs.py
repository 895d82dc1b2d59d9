"""The jobs of a multirun, before anything starts: arms named, contradictions and hardware said."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from kopt.cli import main
from kopt.cli.alike import by_protocol, check_alike
from kopt.cli.arms import name_arms
from kopt.cli.fleet_plan import fleet_plan_json, fleet_plan_text, job_plan
from kopt.cli.hardware import check_hardware
from kopt.cli.job import Job
from kopt.cli.prepared import Prepared, Refused, prepare, why_refused
from kopt.cli.rates import Rates
from kopt.config import RunConfig, load
from kopt.data.lock import RunLock
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError, StoreError
from kopt.ports import Usage


def config(**values: object) -> RunConfig:
    return load({"problem": "builtin/softmax", **values})


def job(*overrides: str, number: int = 0, **values: object) -> Prepared:
    return Prepared(
        config=config(**values), problems=(), seeds={}, number=number, overrides=overrides
    )


def names(*jobs: Prepared) -> list[str]:
    return [each.config.arm_name for each in name_arms(jobs)]


def test_a_search_and_a_programmer_name_an_arm_whatever_it_runs_on() -> None:
    assert names(
        job("search=mcts", "seed=0", "problem=builtin/softmax", search={"kind": "mcts"}),
        job("search=greedy", "seed=1", "problem=builtin/softmax", search={"kind": "greedy"}),
    ) == ["mcts-rewriter", "greedy-rewriter"]


def test_jobs_that_would_be_called_alike_are_told_apart_by_what_differs() -> None:
    assert names(
        job("search=mcts", "search.c_uct=0.5", "search.iterations=3"),
        job("search=mcts", "search.c_uct=2", "search.iterations=3"),
    ) == ["mcts-rewriter,search.c_uct=0.5", "mcts-rewriter,search.c_uct=2"]


def test_a_name_that_was_given_stands() -> None:
    # KernelPro's seeds are temperatures too: one arm, whatever the temperature.
    assert names(job("programmer=a", arm="tools"), job("programmer=b", arm="tools")) == [
        "tools",
        "tools",
    ]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"device": "cuda"}, "device=cuda: expected a GPU"),
        ({"energy": "aware"}, "energy=aware: expected a GPU"),
        ({"energy": "measure", "device": "cpu"}, "energy=measure: expected a GPU"),
    ],
)
def test_an_arm_that_cannot_run_here_is_named(values: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_hardware(config(**values), count_gpus_here=lambda: 0)


def test_a_cluster_that_is_joined_knows_its_devices_itself() -> None:
    joined = config(device="cuda", cluster={"address": "auto"})
    check_hardware(joined, count_gpus_here=lambda: 0)
    check_hardware(config(device="cuda", energy="aware"), count_gpus_here=lambda: 1)


def test_recorded_evidence_needs_no_gpu() -> None:
    recorded = {"kind": "recorded", "run": "runs/first", "verdicts": True}
    check_hardware(config(energy="aware", programmer=recorded), count_gpus_here=lambda: 0)


def test_an_arm_that_lacks_a_part_of_kopt_does_not_run() -> None:
    with pytest.raises(ConfigError, match="not built yet"):
        prepare(config(lacks=["pipeline=agents is not built yet"]))


def test_jobs_of_one_fleet_share_a_cluster_and_a_way_to_share() -> None:
    check_alike([config(seed=0), config(seed=1)])
    with pytest.raises(ConfigError, match=r"cluster.num_cpus=1 and cluster.num_cpus=2"):
        check_alike([config(cluster={"num_cpus": 1}), config(cluster={"num_cpus": 2})])
    with pytest.raises(ConfigError, match=r"fleet.share=candidates and fleet.share=tokens"):
        check_alike([config(), config(fleet={"share": "tokens"})])


def test_jobs_that_judge_alike_are_one_group() -> None:
    loose = {"ladder": "loose"}
    assert by_protocol([config(), config(evaluate=loose), config(seed=1)]) == [[0, 2], [1]]


def test_a_plan_says_what_is_known_and_where_from() -> None:
    ready = prepare(config(seed=[0, 1], search={"kind": "mcts", "iterations": 3}))
    (problem,) = ready.problems
    rates = Rates(
        pace_s={problem.problem_id: 2.0}, mean_pace_s=2.0, runs=("runs/first", "runs/second")
    )
    plan = job_plan(ready, rates)
    # 2 seeds x 3 x 2 candidates at 2 s.
    assert (plan.searches, plan.candidates, plan.device_s, plan.prompts) == (2, 12, 24.0, 0)
    text = fleet_plan_text([plan], [Refused(number=1, overrides=(), lines=("no",))], rates)
    assert "rates: 2 earlier run(s), runs/first to runs/second" in text
    assert "job 1 cannot run: no" in text


def test_a_reason_that_jobs_have_in_common_is_said_once() -> None:
    lines = {
        0: ("no GPU",),
        1: ("no GPU", "no key"),
        2: ("no GPU",),
        4: ("no GPU",),
        6: ("no key",),
    }
    refused = [Refused(number=n, overrides=(), lines=each) for n, each in lines.items()]
    assert why_refused(refused) == [("jobs 0-2, 4", "no GPU"), ("jobs 1, 6", "no key")]
    assert why_refused(refused[:1]) == [("job 0", "no GPU")]


def test_of_a_multirun_that_cannot_begin_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "-m", "search=mcts,greedy", "problem=builtin/softmaxx"]) == 2
    said = capfd.readouterr().err
    assert (
        said
        == "kopt: jobs 0-1: unknown problem 'builtin/softmaxx'; did you mean builtin/softmax?\n"
    )
    assert list(tmp_path.glob("runs/*")) == []


def test_a_fleet_whose_folders_another_driver_has_is_refused(tmp_path: Path) -> None:
    from kopt.cli.fleet import run_fleet

    runs = [RunDir(tmp_path / name) for name in ("0", "1")]
    with ExitStack() as held:
        for run in runs:
            run.path.mkdir()
            held.callback(RunLock(run.path).release)
        jobs = [
            Job(config=config(), problems=(), run_dir=run, observer=lambda search, event: None)
            for run in runs
        ]
        with pytest.raises(StoreError, match="/0: another driver runs here"):
            run_fleet(jobs, resume="kopt resume runs/sweep")


def test_a_plan_without_rates_says_unknown_and_sums_nothing_up() -> None:
    ready = prepare(config())
    record = fleet_plan_json([job_plan(ready, Rates())], [], Rates())
    assert (record["device_s"], record["tokens_in"], record["rates"]) == (None, 0, [])


def test_a_problem_that_was_never_measured_is_planned_at_the_mean_and_a_model_by_its_cost() -> None:
    ready = prepare(config(search={"kind": "best_of_n", "iterations": 2, "candidates": 5}))
    asking = Prepared(
        config=ready.config.model_copy(
            update={"programmer": load(_openai()).programmer},
        ),
        problems=ready.problems,
        seeds={},
    )
    rates = Rates(
        mean_pace_s=0.5,
        usage={"openai": Usage(tokens_in=100, tokens_out=10, cost_usd=0.25)},
        runs=("runs/first",),
    )
    plan = job_plan(asking, rates)
    assert (plan.device_s, plan.guessed, plan.prompts) == (5.0, 1, 2)
    assert (plan.tokens_in, plan.tokens_out, plan.cost_usd) == (1_000, 100, 2.5)


def _openai() -> dict[str, object]:
    return {"problem": "builtin/softmax", "programmer": {"kind": "openai", "model": "m"}}


def test_a_multiruns_folder_is_read_back(tmp_path: Path) -> None:
    from kopt.data.fleet_file import FleetJob, is_fleet, read_fleet_file, write_fleet_file

    jobs = [FleetJob(folder="0", arm="mcts-rewriter", overrides=("search=mcts",))]
    assert not is_fleet(tmp_path)
    write_fleet_file(tmp_path, jobs)
    assert is_fleet(tmp_path)
    assert read_fleet_file(tmp_path) == jobs


def test_a_multirun_is_played_job_by_job_of_the_same_arm(tmp_path: Path) -> None:
    from kopt.data.fleet_file import FleetJob, run_of_arm, write_fleet_file

    arms = ("C0", "C1", "C1")
    jobs = [FleetJob(folder=str(n), arm=arm, overrides=()) for n, arm in enumerate(arms)]
    write_fleet_file(tmp_path, jobs)
    assert run_of_arm(tmp_path, "C0") == tmp_path / "0"
    assert run_of_arm(tmp_path / "1", "C0") == tmp_path / "1"  # a run of its own
    with pytest.raises(ConfigError, match="2 jobs of arm C1; name the folder of one: 1, 2"):
        run_of_arm(tmp_path, "C1")
    with pytest.raises(ConfigError, match="no job of arm C2; there are: C0, C1"):
        run_of_arm(tmp_path, "C2")
