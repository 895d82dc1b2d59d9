"""What is kept of baselines: found again, never another's, never damaged, never a candidate's."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.actors.cache.kinds import open_store
from kopt.actors.config import EvaluateConfig, TimingConfig
from kopt.actors.supervisor.baseline_cache import BaselineCache, fingerprint
from kopt.actors.supervisor.confinement import confinement_of
from kopt.actors.supervisor.settings import Bench
from kopt.problem import Problem

PROBLEM = Problem(name="rows", source="class Model: pass")
TIMES_US = {"eager": 12.5, "compile": 8.0}


def bench_of(folder: Path, **changes) -> Bench:
    made = Bench(
        zygote=None,  # type: ignore[arg-type] - nothing is forked
        device="cpu",
        config=EvaluateConfig(),
        cache_dir=folder,
        num_threads=2,
        memory_bytes=1 << 30,
        device_name="a processor",
    )
    return replace(made, **changes)


def entry_file(folder: Path) -> Path:
    (found,) = (folder / "baseline").glob("*/*/value")
    return found


def rewritten(folder: Path, value: bytes) -> None:
    """Put another value under the one key that is there, sound as far as the store can tell."""
    store = open_store(folder, "baseline")
    key = entry_file(folder).parent.name
    with store.entry(key) as entry:
        store.drop(entry)
    store.put(key, value)


def test_times_that_were_kept_are_found_by_another_process(tmp_path) -> None:
    BaselineCache(bench_of(tmp_path), PROBLEM).keep(TIMES_US)
    assert BaselineCache(bench_of(tmp_path), PROBLEM).load() == TIMES_US


def test_nothing_is_kept_at_first(tmp_path) -> None:
    assert BaselineCache(bench_of(tmp_path), PROBLEM).load() == {}


def test_times_take_the_place_of_older_ones(tmp_path) -> None:
    cache = BaselineCache(bench_of(tmp_path), PROBLEM)
    cache.keep(TIMES_US)
    cache.keep({"eager": 1.0})
    assert cache.load() == {"eager": 1.0}


OTHERS = {
    "ladder": {"config": EvaluateConfig(ladder="tf32")},
    "module mode": {"config": EvaluateConfig(module_mode="eval")},
    "protocol": {"config": EvaluateConfig(timing=TimingConfig(protocol="do_bench"))},
    "threads": {"num_threads": 4},
    "device": {"device_name": "another processor"},
}


@pytest.mark.parametrize("what", OTHERS)
def test_times_measured_otherwise_are_not_found(tmp_path, what) -> None:
    BaselineCache(bench_of(tmp_path), PROBLEM).keep(TIMES_US)
    assert BaselineCache(bench_of(tmp_path, **OTHERS[what]), PROBLEM).load() == {}


def test_times_of_another_problem_are_not_found_and_a_name_is_none(tmp_path) -> None:
    BaselineCache(bench_of(tmp_path), PROBLEM).keep(TIMES_US)
    other = replace(PROBLEM, source="class Model: ...")
    assert BaselineCache(bench_of(tmp_path), other).load() == {}
    assert BaselineCache(bench_of(tmp_path), replace(PROBLEM, name="x")).load() == TIMES_US


def test_a_file_that_was_damaged_is_measured_again_and_said(tmp_path, caplog) -> None:
    cache = BaselineCache(bench_of(tmp_path), PROBLEM)
    cache.keep(TIMES_US)
    entry_file(tmp_path).write_bytes(b"\x00" * 10)
    with caplog.at_level(logging.WARNING):
        assert cache.load() == {}
    assert "damaged" in caplog.text
    cache.keep(TIMES_US)
    assert cache.load() == TIMES_US


VALUES = {
    "no JSON": b"{",
    "no times": b"{}",
    "no number": b'{"fingerprint": {}, "times_us": {"eager": "soon"}}',
    "no time": b'{"fingerprint": {}, "times_us": {"eager": -1.0}}',
    "an infinite time": b'{"fingerprint": {}, "times_us": {"eager": Infinity}}',
    "no baseline": b'{"fingerprint": {}, "times_us": {"fastest": 1.0}}',
}


@pytest.mark.parametrize("value", VALUES)
def test_an_entry_that_is_none_is_measured_again_and_said(tmp_path, caplog, value) -> None:
    cache = BaselineCache(bench_of(tmp_path), PROBLEM)
    cache.keep(TIMES_US)
    rewritten(tmp_path, VALUES[value])
    with caplog.at_level(logging.WARNING):
        assert cache.load() == {}
    assert "baselines of rows are measured again: what is kept is damaged" in caplog.text
    assert not list((tmp_path / "baseline").glob("*/*/value"))


def test_an_entry_of_something_else_is_measured_again_and_said(tmp_path, caplog) -> None:
    cache = BaselineCache(bench_of(tmp_path), PROBLEM)
    cache.keep(TIMES_US)
    other = {**fingerprint(bench_of(tmp_path), PROBLEM), "device": "cuda another"}
    rewritten(tmp_path, json.dumps({"fingerprint": other, "times_us": {"eager": 1.0}}).encode())
    with caplog.at_level(logging.WARNING):
        assert cache.load() == {}
    assert "what is kept is of something else" in caplog.text


def test_a_store_that_cannot_be_written_is_said_and_costs_nothing_else(tmp_path, caplog) -> None:
    (tmp_path / "baseline").write_text("a file where the folder should be")
    cache = BaselineCache(bench_of(tmp_path), PROBLEM)
    with caplog.at_level(logging.WARNING):
        cache.keep(TIMES_US)
    assert "baselines of rows are not kept" in caplog.text
    assert cache.load() == {}


def test_a_candidate_may_write_nowhere_near_what_is_kept(tmp_path) -> None:
    kept = open_store(tmp_path, "baseline").root.resolve()
    given = confinement_of(
        tmp_path / "scratch",
        settings={"device": "cpu", "num_threads": 2},
        cache_dir=tmp_path,
        memory_bytes=1 << 30,
        build_dir=tmp_path / "build" / "own",
        keeps_builds=True,
    )
    for folder in (given.scratch, *given.writable, *given.discarded):
        assert not kept.is_relative_to(Path(folder))
        assert not Path(folder).is_relative_to(kept)
