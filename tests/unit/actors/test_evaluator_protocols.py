"""The evaluator under every protocol, and what it keeps of baselines, on the CPU."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kopt.actors.cache.kinds import open_store
from kopt.actors.config import EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.actors.supervisor import audit
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


Start = Callable[..., RaceStudy]


@pytest.fixture(scope="module")
def supervised(tmp_path_factory) -> Iterator[Start]:
    """Returns a function: the supervisor of a protocol, on a cache of its own unless one is given.

    Asked for again, it is the same one: its problem's session is open, and its baselines are timed.
    """
    started: dict[tuple[object, ...], RaceStudy] = {}

    def start(
        protocol: TimingProtocol = "abba", *, compiles: bool = False, cache: Path | None = None
    ) -> RaceStudy:
        key = (protocol, compiles, cache)
        if key not in started:
            config = EvaluateConfig(
                compile=compiles,
                trials=1,
                secret=7,
                timeouts=TimeoutConfig(load_s=120.0, correctness_s=60.0, timing_s=120.0),
                timing=TimingConfig(protocol=protocol, min_pairs=4, max_pairs=4, block_ms=20.0),
            )
            folder = cache or tmp_path_factory.mktemp("cache")
            # A study is a supervisor that can do one thing more, which one test is about.
            started[key] = RaceStudy(config, device="cpu", cache_dir=folder)
        return started[key]

    yield start
    for supervisor in started.values():
        supervisor.close()


def judged(supervisor: Supervisor, problem: Problem, made: Candidate, tmp_path: Path) -> Evaluation:
    builds = tmp_path / "build" / made.candidate_id[:8]
    builds.mkdir(parents=True, exist_ok=True)
    return supervisor.evaluate(problem, made, build_dir=builds)


@dataclass(frozen=True)
class Search:
    """What a first search left: who judged, what it found, and its cache as it was then."""

    supervisor: RaceStudy
    timing: Timing
    cache: Path

    def copied(self, folder: Path) -> Path:
        """A second search's cache, in which the first one's baselines are."""
        return Path(shutil.copytree(self.cache / "baseline", folder / "cache" / "baseline")).parent


@pytest.fixture(scope="module")
def searched(supervised: Start, tmp_path_factory) -> Search:
    """A first search under our own protocol, of one candidate; it may go on."""
    folder = tmp_path_factory.mktemp("first")
    supervisor = supervised(cache=folder / "cache")
    timing = timing_of(judged(supervisor, reference(), candidate(PAUSE_S / 2), folder))
    shutil.copytree(folder / "cache" / "baseline", folder / "then" / "baseline")
    return Search(supervisor=supervisor, timing=timing, cache=folder / "then")


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


def test_the_audit_after_a_race_compares_twice_as_many_outputs(
    supervised, tmp_path, monkeypatch
) -> None:
    """The others are left to chance, which leaves them all out here."""
    monkeypatch.setattr(audit, "FIRST_SHARE", 0.0)
    monkeypatch.setattr(audit, "LATER_SHARE", 0.0)
    problem = reference(0.001)  # its blocks have more calls than are compared
    evaluation = judged(supervised(), problem, candidate(0.001), tmp_path)
    assert isinstance(evaluation.verdict, Correct), evaluation.verdict.reason
    (said,) = (check.detail for check in evaluation.checks if check.name == "timed_output")
    twice = audit.MAX_COMPARED * audit.CLOSING_FACTOR
    assert said.startswith(f"{twice} outputs of timed calls agree"), said


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
def test_a_clock_that_lies_pays_under_no_protocol(supervised, searched, tmp_path, protocol) -> None:
    hidden = f"exec({LYING[::-1]!r}[::-1], globals())\n"
    supervisor = searched.supervisor if protocol == "abba" else supervised(protocol)
    evaluation = judged(supervisor, reference(), candidate(PAUSE_S, before=hidden), tmp_path)
    verdict = evaluation.verdict
    if isinstance(verdict, Correct):  # our clock raised it to what it supports
        assert verdict.timing.speedup < 1.3
    else:
        assert isinstance(verdict, Cheated)


def entry_of(cache: Path, problem: Problem) -> tuple[str, dict[str, Any]]:
    """The key and the value under which a problem's baselines are kept."""
    found = {
        path.parent.name: json.loads(path.read_bytes())
        for path in (cache / "baseline").glob("*/*/value")
    }
    (entry,) = [
        (key, value)
        for key, value in found.items()
        if value["fingerprint"]["problem"] == problem.problem_id
    ]
    return entry


def kept_us(cache: Path, problem: Problem) -> dict[str, float]:
    times_us: dict[str, float] = entry_of(cache, problem)[1]["times_us"]
    return times_us


def keep(cache: Path, problem: Problem, **times_us: float) -> None:
    key, value = entry_of(cache, problem)
    value["times_us"] |= times_us
    store = open_store(cache, "baseline")
    with store.entry(key) as entry:
        store.drop(entry)
    store.put(key, json.dumps(value).encode())


@pytest.fixture(scope="module")
def compiling(supervised: Start, searched: Search, tmp_path_factory) -> tuple[RaceStudy, Path]:
    """A second search, that compiles: the first is said to have compiled too, and its cache."""
    cache = searched.copied(tmp_path_factory.mktemp("second"))
    keep(cache, reference(), compile=123_456.0)
    return supervised(compiles=True, cache=cache), cache


@pytest.mark.slow
def test_a_second_search_does_not_compile_what_cannot_win(searched, compiling, tmp_path) -> None:
    first = searched.timing
    assert kept_us(searched.cache, reference()) == {"eager": first.eager_us}
    evaluation = judged(compiling[0], reference(), candidate(PAUSE_S / 2), tmp_path)
    second = timing_of(evaluation)
    assert second.compile_us == 123_456.0  # compiling it would have found some 10 ms
    assert second.baseline == "eager"
    assert second.eager_us != first.eager_us  # what is raced is timed anew
    assert missing_baselines(to_json(evaluation)) == []


def test_times_that_do_not_hold_any_more_are_measured_again(
    supervised, searched, tmp_path, caplog
) -> None:
    cache = searched.copied(tmp_path)
    keep(cache, reference(), eager=PAUSE_S * 1e7)
    second = supervised(cache=cache)
    timing = timing_of(judged(second, reference(), candidate(PAUSE_S / 2), tmp_path))
    assert timing.eager_us < PAUSE_S * 1e7
    assert kept_us(cache, reference())["eager"] == timing.eager_us
    assert "measured again: this device takes another time now" in caplog.text


@pytest.mark.slow
def test_a_baseline_that_does_not_compile_is_missing_from_every_evaluation_and_not_forgotten(
    compiling, tmp_path
) -> None:
    supervisor, cache = compiling
    problem = replace(reference(), source=reference().source + "\ntorch.compile = None\n")
    for pause_s in (PAUSE_S, PAUSE_S / 2):
        evaluation = judged(supervisor, problem, candidate(pause_s), tmp_path)
        assert timing_of(evaluation).compile_us is None
        (line,) = missing_baselines(to_json(evaluation))
        assert line.startswith("compile: not measured: ")
    assert set(kept_us(cache, problem)) == {"eager"}  # the next session tries it again


def test_a_candidate_can_be_raced_again_and_again(searched, tmp_path) -> None:
    with searched.supervisor.rematch(
        reference(), candidate(PAUSE_S / 2), build_dir=tmp_path
    ) as rematch:
        races = [rematch.race() for _ in range(3)]
    assert len({race.time_us for race in races}) == 3
    assert all(1.2 < race.speedup < 3.0 for race in races)
