import json
import subprocess
import sys
from pathlib import Path

import pytest
import simulate_cluster
from simulate_cluster_latencies import RECORDED, Latencies, Recorded, read_recorded

SCRIPT = Path(simulate_cluster.__file__)


def test_a_small_cluster_is_busy_while_there_are_trees_for_it():
    scene = simulate_cluster.Scene(
        gpus=2,
        servers=1,
        trees=12,
        candidates=16,
        slots=64,
        builders=4,
        per_search=4,
        seed=0,
        recorded=str(RECORDED),
    )
    row = simulate_cluster.simulate(scene)
    assert row.candidates == 12 * 16
    assert row.utilisation > 0.9
    assert 0 < row.whole <= 1
    assert row.ramp_s < row.enough_s <= row.finish_s
    assert row.finish_s > 100  # of the virtual clock; it took a second or so


def test_too_few_model_servers_leave_devices_idle():
    common = {"gpus": 8, "servers": 1, "trees": 16, "candidates": 8, "builders": 4, "seed": 0}
    rows = [
        simulate_cluster.simulate(
            simulate_cluster.Scene(slots=slots, per_search=4, recorded=str(RECORDED), **common)
        )
        for slots in (4, 512)
    ]
    assert rows[0].whole < 0.5 * rows[1].whole
    assert rows[0].finish_s > rows[1].finish_s


def test_the_script_prints_one_json_object_last():
    words = ["rows=1:1:2", "candidates=4", "workers=1", "--json"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert list(found)[-1] == "ratio"
    assert found["rows"][0]["candidates"] == found["candidates"] == 2 * 4


@pytest.mark.parametrize("word", ["rows=8:1", "rows=0:1:1", "rows=a:b:c", "recorded=/no/such"])
def test_a_wrong_word_is_one_line(word, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["simulate_cluster.py", word])
    with pytest.raises(SystemExit, match=r"^expected ") as ended:
        simulate_cluster.main()
    assert "\n" not in str(ended.value)


ROWS = [
    Recorded(kind="correct", built_s=1.0, held_s=4.0, prepared_s=2.0),
    Recorded(kind="crashed", built_s=0.5, held_s=1.0, prepared_s=2.0),
]


def test_equal_keys_draw_equal_seconds_and_the_seed_changes_them():
    first, again, other = (Latencies(ROWS, seed=seed) for seed in (0, 0, 1))
    again.answer_s("something else")
    assert first.answer_s("a") == again.answer_s("a")
    assert first.answer_s("a") != other.answer_s("a")


def test_answers_are_as_fast_and_as_slow_as_published():
    drawn = sorted(Latencies(ROWS, seed=0).answer_s(str(number)) for number in range(4000))
    # One in twenty below 8.8 s, one in twenty above 159 s, none above 900 s.
    assert drawn[200] == pytest.approx(8.8, rel=0.15)
    assert drawn[3800] == pytest.approx(159.0, rel=0.15)
    assert drawn[-1] <= 900.0


def test_a_candidate_is_drawn_from_those_of_its_verdict():
    latencies = Latencies(ROWS, seed=0)
    assert latencies.candidate("a", kind="crashed") == ROWS[1]
    assert latencies.candidate("a", kind="timed_out") in ROWS  # none was recorded


def test_taking_up_a_problem_takes_as_long_as_recorded_and_its_compilation():
    drawn = sorted(Latencies(ROWS, seed=0).prepare_s(str(number)) for number in range(1000))
    # 2 s recorded; compilations take 0.1 s to 33.2 s, half of them 0.8 s or less.
    assert drawn[0] == pytest.approx(2.1, abs=0.01)
    assert 30.0 < drawn[-1] < 35.3
    assert drawn[500] == pytest.approx(2.8, abs=0.1)


def test_waits_and_builds_are_not_held_on_the_device(tmp_path):
    stages = {"queued": 9.0, "built": 3.0, "prepared": 2.0, "forked": 0.5, "timing_queued": 7.0}
    rows = [{"kind": "correct", "timeline_s": {**stages, "timed": 1.5}}]
    for text in ({"each": rows}, {"kopt_cold": {"each": rows}}):
        path = tmp_path / "recorded.json"
        path.write_text(json.dumps(text), encoding="utf-8")
        expected = Recorded(kind="correct", built_s=3.0, held_s=2.0, prepared_s=2.0)
        assert read_recorded(path) == [expected]


def test_a_recording_without_candidates_is_refused(tmp_path):
    path = tmp_path / "recorded.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="expected `each`"):
        read_recorded(path)
