"""A plan says what a model may cost, from what earlier runs paid."""

from __future__ import annotations

from pathlib import Path

from kopt.cli.plan import plan_json, plan_rows, plan_text
from kopt.config import RunConfig, load
from kopt.data.fold import fold
from kopt.data.problems import resolve
from kopt.data.results import write_results
from kopt.data.rundir import RunDir
from kopt.testing.fakes import ManualClock, MemorySink, correct, source_candidate
from kopt.testing.sample_journal import write_search


def planned(out: Path, **programmer: object) -> RunConfig:
    return load(
        {
            "problem": "builtin/softmax",
            "out": str(out),
            "seed": [0, 1],
            "programmer": programmer,
            "limits": {"tokens": 5_000_000, "cost_usd": 2.5},
            "search": {"kind": "best_of_n", "iterations": 3, "candidates": 2},
        }
    )


def text(config: RunConfig) -> str:
    return plan_text(config, plan_rows(config, resolve(list(config.problem), config.problems)))


def test_a_plan_with_a_model_says_prompts_and_limits_before_anything_is_known(tmp_path: Path):
    config = planned(tmp_path, kind="openai", model="m")
    words = text(config)
    assert "at most 6 prompts; tokens and cost not known yet" in words  # 2 seeds x 3 iterations
    assert "limits.tokens stops it after 5,000,000 tokens" in words
    assert "limits.cost_usd stops it after 2.5 USD" in words


def test_a_plan_takes_tokens_and_cost_from_earlier_runs_of_that_programmer(tmp_path: Path):
    sink = MemorySink()
    # One expansion with one candidate: 100 tokens read, 10 written, 0.5 USD (write_search).
    write_search(sink, arm="a", seed=0, expansions=[[(source_candidate("c"), correct(2.0))]])
    run = RunDir.create(tmp_path, "earlier", clock=ManualClock())
    write_results(run, fold(sink.records))
    config = planned(tmp_path, kind="openai", model="m")
    assert "not known yet" in text(config)  # that run's programmer was another
    config = planned(tmp_path, kind="package/scripted")
    problems = resolve(list(config.problem), config.problems)
    record = plan_json(config, plan_rows(config, problems))
    assert record["tokens_in"] is None

    config = config.model_copy(
        update={"programmer": config.programmer.model_copy(update={"kind": "scripted"})}
    )
    record = plan_json(config, plan_rows(config, problems))
    assert (record["tokens_in"], record["tokens_out"], record["cost_usd"]) == (1200, 120, 6.0)


def test_a_plan_without_a_model_costs_nothing(tmp_path: Path):
    assert "no tokens, no cost" in text(planned(tmp_path, kind="recorded", run="runs/x"))
    assert "6 prompts to answer by hand" in text(planned(tmp_path, kind="mailbox"))
