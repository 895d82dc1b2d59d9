"""`kopt watch` on run folders that the real driver and journal made."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from rich.console import Console

from kopt.cli import main
from kopt.cli.lane_report import lanes_reported
from kopt.cli.watch_state import Step, Watched
from kopt.cli.watch_view import Moment, count, frame, trend
from kopt.cli.watched_run import WatchedRun
from kopt.clock import SystemClock
from kopt.data.journal import Journal
from kopt.data.lanes_file import read_lanes, write_lanes
from kopt.data.record import Record
from kopt.data.rundir import RunDir
from kopt.events import ExpansionCancelled, SearchEnded
from kopt.lane import LaneLoad
from kopt.testing.fakes import (
    ManualClock,
    MemorySink,
    correct,
    source_candidate,
)
from kopt.testing.sample_journal import SAMPLE_PROBLEM, asked, made, reached, started, write_search
from kopt.verdict import Crashed

NAME = "set/one/arm/0"
LOAD = LaneLoad(name="timing", num_calls=2, num_places=4, num_waiting=7, busy_s=30.0, began_s=15.0)


def lines_of(capfd: pytest.CaptureFixture[str], *words: str, code: int = 0) -> list[str]:
    assert main(["watch", *words]) == code
    captured = capfd.readouterr()
    return (captured.err if code else captured.out).splitlines()


def test_a_frame_of_an_ended_run_fits_eighty_columns(folder, capfd):
    lines = lines_of(capfd, str(folder), "--once")
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert text.startswith("first: ended, ")
    assert "1 of 1 searches ended; 16 of at most 16 candidates told" in text
    assert re.search(r"set/one +16 +\d+ +\d\.\d\dx \[", re.sub(" +", " ", text).replace("x ", "x "))


def test_without_a_terminal_one_frame_is_printed(folder, capfd):
    assert lines_of(capfd, str(folder)) == lines_of(capfd, str(folder), "--once")


def test_the_snapshot_says_what_the_journal_holds(folder, capfd):
    (line,) = lines_of(capfd, str(folder), "--json", "--search", NAME)
    found = json.loads(line)
    assert found["status"] == "ended"
    assert found["candidates"]["told"] == 16
    assert found["candidates"]["run"] + found["candidates"]["cached"] == 16
    assert sum(found["candidates"]["by_kind"].values()) == 16
    assert len(found["tree"]["nodes"]) == 16
    assert found["lanes"] == []
    failed = sum(failure["count"] for failure in found["failures"].values())
    assert failed == 16 - found["candidates"]["correct"]
    best = found["best"]["set/one"]
    assert best["trend"][-1]["speedup"] == best["speedup"]


def test_the_tree_shows_each_node_with_verdict_and_strategy(folder, capfd):
    lines = lines_of(capfd, str(folder), "--search", NAME, "--depth", "99")
    assert lines[0] == "set/one/arm/0"
    assert re.match(r"16 nodes, 0 under way; best is node \d+, ", lines[1])
    assert len(lines) == 2 + 16
    assert sum("(best)" in line for line in lines) == 1
    shallow = lines_of(capfd, str(folder), "--search", NAME, "--depth", "1")
    assert len(shallow) < 18
    hidden = sum(int(found) for line in shallow for found in re.findall(r"\+(\d+) below", line))
    assert len(shallow) - 2 + hidden == 16


def test_a_node_is_shown_with_its_verdict_and_the_change_from_its_parent(folder, capfd):
    (line,) = lines_of(capfd, str(folder), "--json", "--search", NAME)
    nodes = json.loads(line)["tree"]["nodes"]
    child = next(node for node in nodes if node["parent"])
    lines = lines_of(capfd, str(folder), "--search", NAME, "--node", str(child["node"]))
    assert lines[0] == f"node {child['node']} of {NAME}, child of {child['parent']}"
    assert any(line.startswith(f"verdict   {child['kind']}") for line in lines)
    assert f"--- node {child['parent']}" in lines
    named = lines_of(capfd, str(folder), "--search", NAME, "--node", child["candidate"][:12])
    assert named == lines


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--search", "nobody"], "has no such search; there are: set/one/arm/0"),
        (["--node", "3"], "expected --search NAME beside it"),
        (["--search", NAME, "--node", "999"], "has nodes 1 to 16"),
        (["--search", NAME, "--depth", "0"], "expected 1 or more"),
        (["--every", "0"], "expected 0.2 s or more"),
        (["--every", "nan"], "expected 0.2 s or more"),
    ],
)
def test_a_wrong_word_is_one_line(folder, capfd, words, said):
    (line,) = lines_of(capfd, str(folder), *words, code=2)
    assert said in line


def test_a_folder_that_is_no_run_is_one_line(tmp_path, capfd):
    for path in (tmp_path, tmp_path / "none"):
        (line,) = lines_of(capfd, str(path), code=2)
        assert "expected a run folder" in line


def test_a_run_of_another_version_is_one_line(folder, capfd):
    manifest = RunDir(folder).read_manifest()
    RunDir(folder).write_manifest({**manifest, "schema": 2})
    (line,) = lines_of(capfd, str(folder), code=2)
    assert "expected a run of schema 1, found 2" in line


def test_a_config_of_another_version_costs_the_budget_alone(folder, capfd):
    manifest = RunDir(folder).read_manifest()
    RunDir(folder).write_manifest({**manifest, "config": {"no": "such key"}})
    lines = lines_of(capfd, str(folder))
    assert "16 candidates told" in lines[1]


def test_looking_on_writes_nothing(folder, capfd):
    def files() -> dict[str, tuple[int, bytes]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.read_bytes())
            for path in folder.rglob("*")
            if path.is_file()
        }

    before = files()
    lines_of(capfd, str(folder), "--search", NAME, "--depth", "9")
    assert files() == before


def test_a_damaged_journal_is_one_line(folder, capfd):
    (path,) = folder.glob("journal/*")
    path.write_bytes(b"not a record\n")
    (line,) = lines_of(capfd, str(folder), code=2)
    assert path.name in line


def test_a_run_is_followed_while_it_is_driven_and_known_as_interrupted_after(tmp_path):
    clock = ManualClock()
    (tmp_path / "journal").mkdir()
    run = WatchedRun(str(tmp_path), search=f"{SAMPLE_PROBLEM.name}/arm/0", now_ns=clock.now_ns)
    assert run.moment.status == "interrupted"
    candidate = source_candidate("a")
    name = f"{SAMPLE_PROBLEM.name}/arm/0"
    with Journal(tmp_path, run="r", clock=clock) as journal:
        write_lanes(tmp_path, [LOAD], time_ns=clock.now_ns())
        assert run.look()
        assert run.moment.status == "running"
        assert run.moment.lanes is not None
        assert run.moment.lanes.lanes == (LOAD,)
        journal.append(name, started(SAMPLE_PROBLEM, arm="arm", seed=0))
        journal.append(name, asked(0, num_candidates=2))
        journal.append(name, made(candidate, expansion=0, index=0))
        assert run.look()
        assert (run.watched.standing.writing, run.watched.standing.judging) == (1, 1)
        assert run.tree is not None
        assert run.tree.pending == 2
        assert not run.look()
    (tmp_path / "lanes.json").unlink()
    run.look()  # the lanes were fresh a moment ago
    assert run.moment.lanes is None
    assert run.moment.status == "interrupted"


def test_a_dead_drivers_lanes_are_not_shown(folder, capfd):
    write_lanes(folder, [LOAD], time_ns=1)
    (line,) = lines_of(capfd, str(folder), "--json")
    assert json.loads(line)["lanes"] == []


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 2}', '{"schema": 1, "time_ns": 0}'])
def test_lanes_that_cannot_be_read_are_none(tmp_path, text):
    assert read_lanes(tmp_path) is None
    (tmp_path / "lanes.json").write_text(text)
    assert read_lanes(tmp_path) is None


def test_lanes_are_reported_while_the_body_runs_and_gone_after(tmp_path):
    async def scenario() -> None:
        looks: Iterator[int] = iter(range(100))
        third = asyncio.Event()

        def lanes() -> list[LaneLoad]:
            if next(looks) == 2:
                third.set()
            return [LOAD]

        async with lanes_reported(tmp_path, lanes, clock=SystemClock(), every_s=0.001):
            await third.wait()
            seen = read_lanes(tmp_path)
            assert seen is not None
            assert seen.lanes == (LOAD,)

    asyncio.run(scenario())
    assert not list(tmp_path.iterdir())


def test_lanes_that_cannot_be_written_do_not_stop_the_run(tmp_path, caplog):
    async def scenario() -> str:
        missing = tmp_path / "gone"
        async with lanes_reported(missing, lambda: [LOAD], clock=SystemClock(), every_s=0.001):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return "went on"

    assert asyncio.run(scenario()) == "went on"
    assert "will not see the lanes" in caplog.text


def test_occupancy_is_of_all_places_since_the_lane_began():
    assert LOAD.occupancy == 0.5  # 30 s of 4 places for 15 s


def test_rates_waits_and_failures_are_of_what_was_run():
    sink = MemorySink()
    crashed = Crashed(stage="run", log="boom\nat line 3")
    slots = [
        [(source_candidate("a"), correct(2.0)), (source_candidate("b"), crashed)],
        [(source_candidate("c"), correct(3.0))],
    ]
    write_search(sink, expansions=slots, end=SearchEnded(reason="budget", failed=False))
    watched = Watched(searches=1, budget=3)
    first_ns = sink.records[0].time_ns
    last_ns = first_ns + 60 * 10**9
    for record in sink.records:
        is_last = record is sink.records[-1]
        time_ns = last_ns if is_last else first_ns
        watched.observe(
            Record(seq=record.seq, time_ns=time_ns, run="r", search=record.search, body=record.body)
        )
    assert watched.live == 3
    # 3 in a minute, on two devices.
    assert watched.live_per_hour(num_devices=2, now_ns=last_ns) == pytest.approx(90.0)
    assert watched.recent_per_hour(num_devices=2, now_ns=last_ns) == pytest.approx(90.0)
    later_ns = last_ns + 700 * 10**9
    assert watched.recent_per_hour(num_devices=2, now_ns=later_ns) is None
    assert watched.failures["crashed"].count == 1
    assert "\n" not in watched.failures["crashed"].newest
    assert watched.recent_failures(now_ns=last_ns) == {"crashed": 1}
    assert watched.recent_failures(now_ns=later_ns) == {"crashed": 0}
    assert watched.spending.tokens_in == 200
    assert watched.spending.cost_usd == 1.0
    assert [step.speedup for step in watched.trends[SAMPLE_PROBLEM.name]] == [2.0, 3.0]
    assert list(watched.waits["timing"]) == [0.0, 0.0, 0.0]


def test_time_in_which_nobody_drove_the_run_is_not_counted():
    sink = MemorySink()
    name = write_search(sink, expansions=[[(source_candidate("a"), correct(2.0))]])
    watched = Watched(searches=1, budget=3)
    for record in sink.records:
        watched.observe(record)
    active_s = watched.active_s(now_ns=watched.last_ns)
    day_ns = watched.last_ns + 86_400 * 10**9
    for offset_s in (0, 5):
        event = ExpansionCancelled(expansion=0, exhausted=False, reason="no programmer")
        watched.observe(
            Record(seq=99, time_ns=day_ns + offset_s * 10**9, run="r", search=name, body=event)
        )
    assert watched.active_s(now_ns=watched.last_ns) == pytest.approx(active_s + 5.0)
    assert watched.failures["cancelled"].count == 2


def test_a_cached_verdict_is_counted_apart():
    sink = MemorySink()
    name = write_search(sink, expansions=[[(source_candidate("a"), correct(2.0))]])
    sink.append(name, asked(1, num_candidates=1))
    sink.append(name, made(source_candidate("a"), expansion=1, index=0))
    again = reached(
        source_candidate("a"),
        correct(2.0),
        problem=SAMPLE_PROBLEM,
        expansion=1,
        index=0,
        cached=True,
    )
    sink.append(name, again)
    watched = Watched(searches=1, budget=3)
    for record in sink.records:
        watched.observe(record)
    assert (watched.live, watched.cached) == (1, 1)


def test_the_trend_rises_with_the_best_so_far():
    steps = [Step(25, 1.0), Step(50, 2.0), Step(100, 3.0)]
    # Right ends of the bars: 25, 50, 75, 100.
    assert trend(steps, first_ns=0, last_ns=100, width=4) == "▁▅▅█"
    assert trend([Step(60, 1.5)], first_ns=0, last_ns=100, width=4) == "  ██"
    assert trend([], first_ns=0, last_ns=100) == ""


@pytest.mark.parametrize(
    ("number", "text"), [(812, "812"), (12_345, "12.3k"), (4_560_000, "4.56M")]
)
def test_tokens_are_short(number, text):
    assert count(number) == text


def test_in_eighty_columns_names_give_way_and_figures_are_whole():
    sink = MemorySink()
    problem = replace(
        SAMPLE_PROBLEM, name="kernelbench/level3/a_problem_with_a_long_name_of_its_own"
    )
    slots = [[(source_candidate("a"), correct(117.25))], [(source_candidate("b"), correct(218.75))]]
    write_search(sink, problem=problem, expansions=slots)
    watched = Watched(searches=1, budget=3)
    for record in sink.records:
        watched.observe(record)
    moment = Moment(
        name="r",
        status="ended",
        owner=None,
        device="a GPU",
        num_devices=1,
        lanes=None,
        now_ns=sink.records[-1].time_ns,
    )
    console = Console(width=80, file=io.StringIO(), record=True)
    console.print(frame(watched, moment))
    shown = console.export_text()
    assert re.search(r"^kernelbench/\S*…\s+2\s+2\s+218\.75x\s+\[\S+, \S+\] eager\s", shown, re.M)
    assert "correct" in shown
    assert max(map(len, shown.splitlines())) <= 80
