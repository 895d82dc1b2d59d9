import json
import os
import subprocess
import sys

import bench_scaling
import bench_scaling_choice
import bench_scaling_options
import pytest
from bench_scaling_fake import fake_fleet
from bench_scaling_fleet import Order, look_at, pinned
from bench_scaling_host import Activity, gpus_of
from bench_scaling_journal import Window
from bench_scaling_kill import device_workers
from bench_scaling_neighbours import is_at_work
from bench_scaling_noise import Races, figures_of_races
from bench_scaling_problems import chosen_problems, tiny_problems
from bench_throughput_record import DeviceRecord

from kopt.config import load
from kopt.lane import LaneLoad


def test_the_command_line_takes_overrides():
    options = bench_scaling_options.parse(["device=cpu", "gpus=1,4", "parts=kill", "races_s=5"])
    assert (options.device, options.gpus, options.parts) == ("cpu", (1, 4), {"kill"})
    assert (options.races_s, options.candidates, options.problems) == (5.0, 6, ())


@pytest.mark.parametrize(
    "word",
    [
        "device=tpu",
        "gpus=two",
        "gpus=0",
        "parts=fleet,wait",
        "candidate=3",
        "candidates=3",
        "size_us=long",
        "kill",
    ],
)
def test_a_wrong_word_is_one_line_and_no_run(word):
    with pytest.raises(SystemExit, match=r"^expected ") as ended:
        bench_scaling_options.parse([word])
    assert "\n" not in str(ended.value)


def test_pretended_gpus_come_in_nodes():
    with pytest.raises(SystemExit, match="nodes of two"):
        bench_scaling_options.parse(["device=fake", "gpus=1,2"])


def test_a_gpu_bench_without_a_gpu_is_one_line(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench_scaling.py", "device=cuda"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SystemExit, match="expected a GPU, found none"):
        bench_scaling.main()


def test_visible_gpus_are_taken_by_their_names(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-1f,5")
    assert gpus_of("cuda", most=2) == ("3", "GPU-1f")
    assert gpus_of("cpu", most=2) == ("0", "1")


def row(problem, reference_us, *, candidates=6, reason=""):
    return {
        "problem": problem,
        "baseline_us": reference_us,
        "candidates": ["an idea"] * candidates,
        "reason": reason,
    }


def test_problems_are_chosen_by_what_they_cost_and_short_and_long_ones_take_turns():
    first = [row("1/a", 900.0), row("1/b", 100.0), row("1/c", 300.0), row("1/d", 2000.0)]
    second = [
        row("2/a", 500.0),
        row("2/few", 50.0, candidates=2),
        row("2/unseen", 60.0, reason="no graph"),
        row("2/unknown", None),
    ]
    found = bench_scaling_choice.choose([first, second], candidates=6, reference_us=1500.0)
    assert [each["problem"] for each in found] == ["1/b", "2/a", "1/a", "1/c"]


def test_the_chosen_problems_are_of_two_levels_from_the_top_on():
    names = chosen_problems(4)
    assert len(names) == len(set(names)) == 4
    assert len({name.split("/")[1] for name in names}) == 2


def order_of(tmp_path, **more):
    return Order(
        name="cold-1",
        device="cpu",
        gpus=("0",),
        cores={0},
        problems=tiny_problems(tmp_path, count=2),
        candidates=4,
        cache=tmp_path / "cache",
        limit_s=60.0,
        **more,
    )


def test_a_fleet_is_kopt_run_with_its_own_cache_cores_and_gpus(tmp_path):
    order = order_of(tmp_path)
    words = order.command(tmp_path)
    assert words[4:8] == [sys.executable, "-m", "kopt", "run"]
    assert f"problem=[{tmp_path}/tiny0.py,{tmp_path}/tiny1.py]" in words
    assert {"search.iterations=2", "search.candidates=2", "cluster.devices=1"} <= set(words)
    environment = order.environment()
    assert environment["KOPT_CACHE_DIR"] == str(tmp_path / "cache")
    assert "CUDA_VISIBLE_DEVICES" not in set(environment) - set(os.environ)


def test_what_a_fleet_of_a_cpu_is_given_is_a_configuration(tmp_path):
    # As Hydra would compose it, for the words that name keys of the configuration.
    given: dict[str, object] = {}
    for word in order_of(tmp_path, overrides=bench_scaling.LITTLE_EFFORT).overrides:
        name, _, value = word.partition("=")
        place = given
        *above, last = name.split(".")
        for part in above:
            place = place.setdefault(part, {})
        place[last] = json.loads(value)
    config = load({**given, "problem": ["builtin/softmax"]})
    assert (config.evaluate.compile, config.evaluate.timing.max_pairs) == (False, 4)


def test_a_pinned_command_has_its_cores_and_its_own_process():
    core = min(os.sched_getaffinity(0))
    show = "import os; print(os.getpid(), sorted(os.sched_getaffinity(0)))"
    process = subprocess.Popen(
        pinned([sys.executable, "-c", show], cores={core}), stdout=subprocess.PIPE, text=True
    )
    said, _ = process.communicate()
    assert said == f"{process.pid} [{core}]\n"


def test_a_look_sees_this_process_and_none_that_is_gone(tmp_path):
    look = look_at(os.getpid(), tmp_path)
    assert look is not None
    assert look.driver_cpu_s > 0
    assert look.driver_rss_mb > 10
    assert look.lanes == ()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert look_at(gone.pid, tmp_path) is None


def fake_process(proc, number, *, parent, title):
    folder = proc / str(number)
    folder.mkdir()
    (folder / "stat").write_text(f"{number} (a (b) c) S {parent} 0 0")
    (folder / "cmdline").write_text(title)


def test_device_workers_are_found_below_their_driver_alone(tmp_path):
    fake_process(tmp_path, 10, parent=1, title="python\0-m\0kopt")
    fake_process(tmp_path, 11, parent=10, title="raylet")
    fake_process(tmp_path, 14, parent=11, title="ray::DeviceWorker.evaluate")
    fake_process(tmp_path, 13, parent=11, title="ray::DeviceWorker")
    fake_process(tmp_path, 12, parent=11, title="ray::Builder")
    fake_process(tmp_path, 20, parent=1, title="ray::DeviceWorker")
    assert device_workers(10, proc=tmp_path) == [14, 13]
    assert device_workers(99, proc=tmp_path) == []


def test_a_fleet_is_at_work_once_half_of_its_places_are_taken():
    def lane(num_calls):
        return LaneLoad(
            name="timing",
            num_calls=num_calls,
            num_places=3,
            num_waiting=0,
            busy_s=0.0,
            began_s=1.0,
        )

    look = look_at(os.getpid(), bench_scaling.Path("/nowhere"))
    assert look is not None
    shown = [
        type(look)(at_ns=0, driver_cpu_s=0, tree_cpu_s=0, driver_rss_mb=0, lanes=lanes)
        for lanes in ((), (lane(1),), (lane(2),))
    ]
    assert [is_at_work(each) for each in shown] == [False, False, True]


def test_activity_is_of_the_window_and_unknown_without_a_record():
    record = DeviceRecord(samples=[(10.0, 100.0), (11.0, 50.0), (12.0, 100.0), (20.0, 0.0)])
    activity = Activity(records={"0": record}, epoch_s=1000.0)
    window = Window(from_ns=1010 * 10**9, to_ns=1012 * 10**9, judged=4)
    # Of two seconds half of one and the whole of the other.
    assert activity.within(window, ["0", "1"]) == [pytest.approx(0.75), None]


def test_refused_races_count_as_races_that_nobody_won():
    races = Races(state="beside", log_ratios=[0.01, -0.01, 0.03], refused=1, gate=1, interval=1)
    figures = figures_of_races(races)
    assert figures["races"] == 4
    assert figures["false_wins_gate"]["rate"] == 0.25
    assert figures["mean"] == pytest.approx(0.01)
    assert figures["spread"] == pytest.approx(0.02)


@pytest.mark.ray
@pytest.mark.soak
def test_pretended_gpus_are_kept_busy_and_lose_nothing():
    row = fake_fleet(gpus=2, searches=1, pace_s=0.5)
    assert (row["judged"] + row["lost"], row["lost"], row["doubled"]) == (40, 0, 0)
    assert row["fault"] == ""
    assert 0.0 < row["share"] <= 1.1


@pytest.mark.ray
@pytest.mark.soak
def test_a_worker_killed_in_the_midst_of_a_run_costs_nothing(tmp_path):
    out = tmp_path / "scaling.json"
    words = ["device=cpu", "gpus=2", "problems=3", "candidates=2", "parts=fleet,kill"]
    done = subprocess.run(
        [sys.executable, bench_scaling.__file__, *words, "limit_s=400", f"out={out}", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == json.loads(out.read_text())
    assert [each["form"] for each in found["fleets"]] == ["cold", "warm"]
    assert [each["judged"] for each in found["fleets"]] == [6, 6]
    assert (found["lost"], found["doubled"]) == (0, 0)
    kill = found["kill"]
    assert (kill["was_killed"], kill["exit_code"], kill["judged"]) == (True, 0, 6)
    assert (kill["missing"], kill["more"]) == (0, 0)
