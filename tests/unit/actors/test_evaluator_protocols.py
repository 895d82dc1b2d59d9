"""The evaluator under every protocol, and what it keeps of baselines, on the CPU."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.actors.cache.kinds import open_store
from kopt.actors.config import EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.actors.supervisor.repeated import RaceStudy
from kopt.actors.supervisor.supervisor import Supervisor
from kopt.candidate import Candidate
from kopt.evaluation import Evaluation, missing_baselines, to_json
from kopt.problem import Problem
from kopt.timing import Timing, TimingProtocol
from kopt.verdict import Cheated, Correct

REFERENCE = """
import time, torch

class Model(torch.nn.Module):
    def forward(self, x):
        time.sleep(PAUSE)
        return x * 2.0 + 1.0

def get_inputs():
    return [torch.randn(64, 32)]
"""
"""Takes the same time however busy the host is, nearly."""
PAUSE_S = 0.01


def reference(pause_s: float = PAUSE_S) -> Problem:
    return Problem(name="paused", source=REFERENCE.replace("PAUSE", str(pause_s)))


def candidate(pause_s: float, *, before: str = "") -> Candidate:
    source = reference(pause_s).source.replace("class Model(", "class ModelNew(")
    return Candidate(source=before + source, language="torch")


Judge = Callable[..., Evaluation]


@pytest.fixture
def supervised(tmp_path) -> Iterator[Callable[..., Supervisor]]:
    """Returns a function that starts a supervisor on one cache; ends the last one."""
    started: list[Supervisor] = []

    def start(
        protocol: TimingProtocol = "abba", *, compiles: bool = False, kind=Supervisor
    ) -> Supervisor:
        while started:
            started.pop().close()
        config = EvaluateConfig(
            compile=compiles,
            trials=1,
            secret=7,
            timeouts=TimeoutConfig(load_s=120.0, correctness_s=60.0, timing_s=120.0),
            timing=TimingConfig(protocol=protocol, min_pairs=4, max_pairs=4, block_ms=20.0),
        )
        started.append(kind(config, device="cpu", cache_dir=tmp_path / "cache"))
        return started[-1]

    yield start
    while started:
        started.pop().close()


def judged(supervisor: Supervisor, problem: Problem, made: Candidate, tmp_path: Path) -> Evaluation:
    builds = tmp_path / "cache" / "build" / made.candidate_id[:8]
    builds.mkdir(parents=True, exist_ok=True)
    return supervisor.evaluate(problem, made, build_dir=builds)


def timing_of(evaluation: Evaluation) -> Timing:
    assert isinstance(evaluation.verdict, Correct), evaluation.verdict.reason
    return evaluation.verdict.timing


@pytest.mark.parametrize("protocol", ["do_bench", "kernelbench"])
def test_a_published_protocol_finds_a_gain_and_says_that_it_found_it(
    supervised, tmp_path, protocol
) -> None:
    evaluation = judged(supervised(protocol), reference(), candidate(PAUSE_S / 4), tmp_path)
    timing = timing_of(evaluation)
    assert timing.protocol == protocol
    assert to_json(evaluation)["protocol"] == protocol
    assert timing.num_pairs == 0
    assert timing.speedup > 2.0
    assert timing.speedup_ci[0] <= timing.speedup <= timing.speedup_ci[1]
    passed = {check.name for check in evaluation.checks if check.passed}
    assert {"two_clocks", "timed_blocks", "timed_output", "first_calls"} <= passed


LYING = """
import kopt.actors.devices.cpu as device
honest = device.CpuDevice.time_calls
def lying(self, *arguments, **options):
    timed = honest(self, *arguments, **options)
    return timed._replace(each_us=[each / 10 for each in timed.each_us])
device.CpuDevice.time_calls = lying
"""


@pytest.mark.parametrize(
    "protocol", ["abba", "do_bench", pytest.param("kernelbench", marks=pytest.mark.soak)]
)
def test_a_clock_that_lies_pays_under_no_protocol(supervised, tmp_path, protocol) -> None:
    hidden = f"exec({LYING[::-1]!r}[::-1], globals())\n"
    evaluation = judged(
        supervised(protocol), reference(), candidate(PAUSE_S, before=hidden), tmp_path
    )
    verdict = evaluation.verdict
    if isinstance(verdict, Correct):  # our clock raised it to what it supports
        assert verdict.timing.speedup < 1.3
    else:
        assert isinstance(verdict, Cheated)


def kept_us(tmp_path: Path) -> dict[str, float]:
    (found,) = (tmp_path / "cache" / "baseline").glob("*/*/value")
    times_us: dict[str, float] = json.loads(found.read_bytes())["times_us"]
    return times_us


def keep(tmp_path: Path, **times_us: float) -> None:
    (found,) = (tmp_path / "cache" / "baseline").glob("*/*/value")
    value = json.loads(found.read_bytes())
    value["times_us"] |= times_us
    store, key = open_store(tmp_path / "cache", "baseline"), found.parent.name
    with store.entry(key) as entry:
        store.drop(entry)
    store.put(key, json.dumps(value).encode())


@pytest.mark.slow
def test_a_second_search_does_not_compile_what_cannot_win(supervised, tmp_path) -> None:
    first = timing_of(judged(supervised(), reference(), candidate(PAUSE_S / 2), tmp_path))
    assert kept_us(tmp_path) == {"eager": first.eager_us}
    keep(tmp_path, compile=123_456.0)
    evaluation = judged(supervised(compiles=True), reference(), candidate(PAUSE_S / 2), tmp_path)
    second = timing_of(evaluation)
    assert second.compile_us == 123_456.0  # compiling it would have found some 10 ms
    assert second.baseline == "eager"
    assert second.eager_us != first.eager_us  # what is raced is timed anew
    assert missing_baselines(to_json(evaluation)) == []


def test_times_that_do_not_hold_any_more_are_measured_again(supervised, tmp_path, caplog) -> None:
    judged(supervised(), reference(), candidate(PAUSE_S / 2), tmp_path)
    keep(tmp_path, eager=PAUSE_S * 1e7)
    timing = timing_of(judged(supervised(), reference(), candidate(PAUSE_S / 2), tmp_path))
    assert timing.eager_us < PAUSE_S * 1e7
    assert kept_us(tmp_path)["eager"] == timing.eager_us
    assert "measured again: this device takes another time now" in caplog.text


@pytest.mark.slow
def test_a_baseline_that_does_not_compile_is_missing_from_every_evaluation_and_not_forgotten(
    supervised, tmp_path
) -> None:
    problem = replace(reference(), source=reference().source + "\ntorch.compile = None\n")
    supervisor = supervised(compiles=True)
    for pause_s in (PAUSE_S, PAUSE_S / 2):
        evaluation = judged(supervisor, problem, candidate(pause_s), tmp_path)
        assert timing_of(evaluation).compile_us is None
        (line,) = missing_baselines(to_json(evaluation))
        assert line.startswith("compile: not measured: ")
    assert set(kept_us(tmp_path)) == {"eager"}  # the next session tries it again


def test_a_candidate_can_be_raced_again_and_again(supervised, tmp_path) -> None:
    study = supervised(kind=RaceStudy)
    builds = tmp_path / "cache" / "build" / "mine"
    builds.mkdir(parents=True)
    with study.rematch(reference(), candidate(PAUSE_S / 2), build_dir=builds) as rematch:
        races = [rematch.race() for _ in range(3)]
    assert len({race.time_us for race in races}) == 3
    assert all(1.2 < race.speedup < 3.0 for race in races)
