"""The strategy tracker's file: shared by processes, bounded, each search counted once."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
from pathlib import Path

import pytest

from kopt.data import strategies
from kopt.data.strategies import MAX_SEARCHES, StrategyFile
from kopt.errors import StoreError
from kopt.memory.tracker import Tally


def tally(label: str = "fusion", *, tried: int = 1, succeeded: int = 0) -> Tally:
    return Tally(label=label, family="norm", bottleneck="", tried=tried, succeeded=succeeded)


def record_many(path: str, worker: int, count: int) -> None:
    file = StrategyFile(Path(path))
    for number in range(count):
        file.record(f"{worker} {number}", [tally()])


def test_a_file_that_is_not_there_says_nothing_and_is_made_with_its_folder(tmp_path: Path) -> None:
    file = StrategyFile(tmp_path / "deep" / "strategies.json")
    assert file.read() == ()
    file.record("a", [tally()])
    assert file.read() == (tally(),)


def test_runs_that_end_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "strategies.json"
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=record_many, args=(str(path), n, 15)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    assert StrategyFile(path).read() == (tally(tried=60),)


def test_a_search_that_ends_again_takes_its_own_place(tmp_path: Path) -> None:
    file = StrategyFile(tmp_path / "s.json")
    file.record("a", [tally(tried=2)])
    file.record("b", [tally(tried=3)])
    file.record("a", [tally(tried=7, succeeded=1)])
    assert file.read() == (tally(tried=10, succeeded=1),)
    file.record("a", [])
    assert file.read() == (tally(tried=3),)


def test_old_contributions_are_added_up_and_the_file_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strategies, "MAX_SEARCHES", 3)
    monkeypatch.setattr(strategies, "MAX_TALLIES", 2)
    file = StrategyFile(tmp_path / "s.json")
    for number, label in enumerate(["rare", "a", "a", "b", "b", "c", "c", "c"]):
        file.record(str(number), [tally(label)])
    content = json.loads(file.path.read_text())
    assert [each["key"] for each in content["searches"]] == ["5", "6", "7"]
    # Of the five that were added up, the least tried label is let go.
    assert [(each["label"], each["tried"]) for each in content["older"]] == [("a", 2), ("b", 2)]
    assert file.read() == (tally("a", tried=2), tally("b", tried=2), tally("c", tried=3))
    assert MAX_SEARCHES == 1_000


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"schema": 1}', '{"schema": 2, "older": [], "searches": []}', '{"a": 1}'],
)
def test_another_file_is_named_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    for act in (StrategyFile(path).read, lambda: StrategyFile(path).record("a", [tally()])):
        with pytest.raises(StoreError, match="expected a strategy tracker's file") as refused:
            act()
        assert "\n" not in str(refused.value)
    assert path.read_text() == text


def test_a_folder_in_its_place_and_a_folder_that_is_a_file_are_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "s.json"):
        with pytest.raises(StoreError):
            StrategyFile(path).record("a", [tally()])


def test_a_lock_that_is_held_for_too_long_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strategies, "LOCK_WAIT_S", 0.05)
    file = StrategyFile(tmp_path / "s.json")
    file.record("a", [tally()])
    with (tmp_path / ".s.json.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match="another process held it"):
            file.record("b", [tally()])
        assert file.read() == (tally(),)  # reading needs no lock
