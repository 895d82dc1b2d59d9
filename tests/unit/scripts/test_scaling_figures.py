import pytest
from bench_scaling_fleet import Look, Order, Watched, shares_of
from bench_scaling_journal import (
    Window,
    figures_of,
    load_within,
    mean_stages,
    steady_window,
    story_of,
)
from bench_scaling_report import efficiency, reached, report

from kopt.actors.lane_worker import LaneWorker
from kopt.data.lanes_file import read_lanes, write_lanes
from kopt.data.record import Record
from kopt.events import ExpansionCancelled, SearchEnded, Told
from kopt.lane import LaneLoad
from kopt.testing.fakes import correct, source_candidate
from kopt.testing.sample_journal import SAMPLE_PROBLEM, asked, made
from kopt.testing.sample_journal import reached as reached_event
from kopt.verdict import Incorrect

SECOND = 10**9


def records(*events):
    """Records of one search, from (second, event)."""
    return [
        Record(seq=seq, time_ns=round(at * SECOND), run="run", search="sample/arm/0", body=body)
        for seq, (at, body) in enumerate(events)
    ]


def judged_at(at, index, *, verdict=None, expansion=0, cached=False):
    candidate = source_candidate(f"# {expansion} {index}\n")
    verdict = verdict or correct(2.0)
    reached = reached_event(
        candidate, verdict, problem=SAMPLE_PROBLEM, expansion=expansion, index=index
    )
    assert not reached.cached
    if cached:
        reached = type(reached)(
            candidate=reached.candidate,
            expansion=expansion,
            index=index,
            cached=True,
            eval=reached.eval,
        )
    return [
        (at - 1, made(candidate, expansion=expansion, index=index)),
        (at, reached),
        (at, Told(expansion=expansion, index=index, node=index + 1, reward=0.5)),
    ]


def order_of(tmp_path, *, gpus):
    return Order(
        name="warm",
        device="cuda",
        gpus=tuple("01234567"[:gpus]),
        cores=range(8 * gpus),
        problems=("set/one", "set/two"),
        candidates=4,
        cache=tmp_path / "cache",
        limit_s=60.0,
    )


def look(at_s, *, cpu_s, busy_s, by_gpu, waiting=0):
    timing = LaneLoad(
        name="timing",
        num_calls=5,
        num_places=6,
        num_waiting=4,
        busy_s=busy_s,
        began_s=at_s,
        worker_busy_s=by_gpu,
    )
    build = LaneLoad(
        name="build", num_calls=1, num_places=8, num_waiting=waiting, busy_s=0.0, began_s=at_s
    )
    return Look(
        at_ns=round(at_s * SECOND),
        driver_cpu_s=cpu_s,
        tree_cpu_s=10 * cpu_s,
        driver_rss_mb=300.0 + at_s,
        lanes=(build, timing),
    )


def test_a_story_counts_what_was_judged_and_what_was_known_before():
    wrong = Incorrect(check="values:own", detail="expected 1, found 2")
    story = story_of(
        records(
            (0, asked(0, num_candidates=3)),
            *judged_at(2, 0),
            *judged_at(3, 1, verdict=wrong),
            *judged_at(4, 2, cached=True),
            (5, SearchEnded(reason="exhausted: no more", failed=False)),
        )
    )
    assert story.judged_ns == [2 * SECOND, 3 * SECOND]
    assert sorted(story.kinds.values()) == ["correct", "correct", "incorrect"]
    assert (story.lost, story.doubled, len(story.candidates)) == (0, 0, 3)
    assert dict(story.ends) == {"exhausted": 1}


def test_a_candidate_that_no_tree_heard_of_is_lost_and_a_second_verdict_doubled():
    first, reached, told = judged_at(2, 0)
    (made_only, *_) = judged_at(3, 1)
    story = story_of(
        records((0, asked(0, num_candidates=2)), first, reached, reached, told, made_only)
    )
    assert story.lost == 1
    assert story.doubled == 1


def test_what_the_programmer_ends_is_no_setback():
    told = ExpansionCancelled(expansion=0, exhausted=True, reason="no more variants")
    died = ExpansionCancelled(expansion=1, exhausted=False, reason="timing-0 died")
    story = story_of(
        records(
            (0, asked(0, num_candidates=2)), (1, told), (2, asked(1, num_candidates=2)), (3, died)
        )
    )
    assert story.cancelled == ["no more variants", "timing-0 died"]
    assert story.setbacks == ["timing-0 died"]


def test_steady_is_from_the_end_of_the_first_wave_to_the_last_verdict_that_leaves_work_for_all():
    # Ten verdicts, one a second from 10 s on. Three places have given their first by 12 s; once
    # fewer than three are left, after 16 s, a place may be idle.
    judged_ns = [(10 + n) * SECOND for n in range(10)]
    window = steady_window(judged_ns, places=3)
    assert window == Window(from_ns=12 * SECOND, to_ns=16 * SECOND, judged=4)
    assert window.per_gpu_hour(2) == pytest.approx(1800.0)
    assert steady_window(judged_ns, places=5) is None


def test_places_in_step_are_not_counted_twice_at_the_start():
    # Two places that give a verdict each, once a second: 3,600 an hour each, and no more.
    judged_ns = [second * SECOND for second in range(10) for _ in range(2)]
    window = steady_window(judged_ns, places=2)
    assert window is not None
    assert window.per_gpu_hour(2) == pytest.approx(3600.0)


def test_loads_are_differences_between_the_first_and_the_last_look_in_the_window():
    looks = [
        look(5, cpu_s=1.0, busy_s=3.0, by_gpu=(1.5, 1.5)),
        look(10, cpu_s=2.0, busy_s=20.0, by_gpu=(12.0, 8.0), waiting=2),
        look(14, cpu_s=3.0, busy_s=42.0, by_gpu=(24.0, 18.0), waiting=4),
        look(30, cpu_s=9.0, busy_s=60.0, by_gpu=(30.0, 30.0)),
    ]
    window = Window(from_ns=10 * SECOND, to_ns=18 * SECOND, judged=16)
    found = load_within(looks, window)
    # 16 verdicts in 8 s: 8 in the 4 s between the looks, for which the driver had 1 s.
    assert found["driver_cpu_ms_each"] == pytest.approx(125.0)
    assert found["driver_core_share"] == pytest.approx(0.25)
    assert found["cpu_s_each"] == pytest.approx(1.25)
    # 22 s of 4 s x 6 places; 12 s and 10 s of 4 s x 3 places each.
    assert found["occupancy"] == pytest.approx(22 / 24)
    assert found["occupancy_by_gpu"] == pytest.approx([1.0, 10 / 12])
    assert (found["builds_waiting"], found["builds_waiting_most"]) == (3.0, 4)


def test_one_look_says_nothing_of_a_load():
    window = Window(from_ns=0, to_ns=9 * SECOND, judged=4)
    assert load_within([look(5, cpu_s=1.0, busy_s=3.0, by_gpu=(3.0,))], window) == {}


def test_stages_are_means_and_waits_are_no_device_s():
    stages = mean_stages([{"queued": 4.0, "built": 2.0, "verified": 1.0}, {"timed": 3.0}])
    assert stages == {
        "queued": 2.0,
        "built": 1.0,
        "verified": 0.5,
        "timed": 1.5,
        "on_device": 2.0,
    }


def test_a_fleet_that_judged_nothing_has_no_rate(tmp_path):
    watched = Watched(order=order_of(tmp_path, gpus=1), run=tmp_path, began_ns=0)
    figures = figures_of(watched, story_of([]))
    assert (figures["whole"], figures["steady"], figures["judged"]) == (None, None, 0)
    assert figures["asked_for"] == 8


def test_figures_of_a_fleet_by_hand(tmp_path):
    events = [(4, asked(0, num_candidates=16))]
    for index in range(16):
        events += judged_at(10 + index, index)
    events.sort(key=lambda event: event[0])
    watched = Watched(
        order=order_of(tmp_path, gpus=2),
        run=tmp_path,
        began_ns=SECOND,
        exit_code=0,
        looks=[
            look(15, cpu_s=2.0, busy_s=20.0, by_gpu=(12.0, 8.0)),
            look(18, cpu_s=3.0, busy_s=36.0, by_gpu=(20.0, 16.0)),
        ],
    )
    figures = figures_of(watched, story_of(records(*events)))
    # 16 verdicts by 25 s, asked from 4 s on: 16 in 21 s of two.
    assert figures["whole"]["per_gpu_hour"] == pytest.approx(16 / 42 * 3600)
    assert figures["whole"]["start_s"] == pytest.approx(3.0)
    assert figures["whole"]["onset_s"] == pytest.approx(6.0)
    # Six places: four verdicts from 15 s to 19 s, of two; then 6 s of tail.
    assert figures["steady"]["per_gpu_hour"] == pytest.approx(1800.0)
    assert figures["steady"]["tail_s"] == pytest.approx(6.0)
    assert figures["steady"]["driver_cpu_ms_each"] == pytest.approx(1000 / 3)


def test_cores_are_shared_out_alike_and_neighbours_stay_together():
    assert shares_of([0, 1, 2, 3, 8], count=2) == [(0, 1), (2, 3)]
    assert shares_of([4], count=2) == [(4,), (4,)]


def fleet(form, gpus, rate, *, lost=0, exit_code=0):
    return {
        "form": form,
        "gpus": gpus,
        "cores": 16 * gpus,
        "exit_code": exit_code,
        "words": "",
        "judged": 60,
        "asked_for": 60,
        "ends": {},
        "lost": lost,
        "doubled": 0,
        "setbacks": [],
        "fault": "",
        "steady": {"per_gpu_hour": rate, "seconds": 30.0, "tail_s": 4.0},
        "whole": {"per_gpu_hour": rate / 2, "onset_s": 8.0},
    }


def test_efficiency_is_a_gpu_s_rate_among_others_over_that_of_one_alone():
    fleets = [fleet("cold", 1, 2000.0), fleet("cold", 2, 1900.0), fleet("warm", 2, 3000.0)]
    assert efficiency(fleets, form="cold", count=2, part="steady") == pytest.approx(0.95)
    assert efficiency(fleets, form="warm", count=2, part="steady") is None


def test_what_was_stopped_from_here_is_not_counted_as_lost_and_what_ended_is():
    stopped = fleet("cold", 1, 2000.0, lost=5, exit_code=None)
    ended = fleet("warm", 1, 2000.0, lost=1)
    result = {"fleets": [stopped, ended], "kill": None, "noise": []}
    assert reached(result)["lost"] == 1
    assert reached({"fleets": [], "kill": None, "noise": []})["lost"] is None


def test_the_report_says_what_was_reached_and_what_is_missing(capsys):
    races = {
        "races": 200,
        "gate": 1,
        "interval": 3,
        "refused": 2,
        "mean": 0.001,
        "spread": 0.004,
        "baseline_us": 101.0,
        "pairs_of_processes": 10,
        "seconds": 40.0,
        "false_wins_gate": {"count": 1, "trials": 200, "rate": 0.005, "ci": [0.0001, 0.0275]},
    }
    result = {
        "device": "cuda",
        "device_name": "a GPU",
        "gpus": 2,
        "cpu": "a CPU",
        "cores": 32,
        "versions": {"torch": "2"},
        "problems": ["set/one"],
        "vllm": "not run",
        "fleets": [fleet("cold", 1, 2000.0), fleet("cold", 2, 1900.0)],
        "kill": None,
        "noise": [{"gpu": 0, "chain": {}, "alone": None, "beside": races}],
        "missing": ["warm-1"],
        "wall_s": 300.0,
    }
    result |= reached(result)
    assert result["false_wins_beside"] == pytest.approx(0.005)
    report(result)
    said = capsys.readouterr().out
    assert "0.950" in said
    assert "missing: warm-1" in said
    assert "false wins beside neighbours 0.50% of 200 races" in said
    assert "A/A on GPU 0, alone: missing" in said


def test_a_worker_s_busy_seconds_are_those_of_its_calls():
    worker = LaneWorker(0, None, is_up=True)
    worker.count(1, now_s=10.0)
    worker.count(1, now_s=12.0)  # one for two seconds
    worker.count(-2, now_s=15.0)  # two for three
    worker.count(0, now_s=99.0)
    assert (worker.busy_s, worker.calls) == (8.0, 0)


def test_what_lanes_tell_of_each_worker_is_read_as_it_was_written(tmp_path):
    lanes = look(5, cpu_s=1.0, busy_s=3.0, by_gpu=(2.0, 1.0)).lanes
    write_lanes(tmp_path, lanes, time_ns=7)
    seen = read_lanes(tmp_path)
    assert seen is not None
    assert seen.lanes == lanes
