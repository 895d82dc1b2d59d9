import os
import time

import bench_throughput
import pytest
from bench_throughput_candidates import mixed_candidates
from bench_throughput_kopt import Phase
from bench_throughput_others import Judged
from bench_throughput_processor import tree_cpu_s
from bench_throughput_record import DeviceRecord, device_record, visible_devices
from bench_throughput_report import (
    compared,
    other_figures,
    phase_figures,
    report,
    report_hardware,
    report_other,
    report_phase,
)

from kopt.testing.fakes import correct, evaluation_of
from kopt.verdict import Incorrect


def test_the_command_line_takes_overrides_with_and_without_dashes():
    options = bench_throughput.parse(["device=cuda", "--limit-s=240", "compile=false", "--json"])
    assert (options.device, options.limit_s, options.compile) == ("cuda", 240.0, False)
    assert (options.candidates, options.samples, options.sides) == (12, 12, {"kopt", "other"})


@pytest.mark.parametrize(
    "words", [["device=tpu"], ["candidate=3"], ["candidates=0"], ["sides=kopt,stock"], ["hang=1"]]
)
def test_a_wrong_word_is_one_line_and_no_run(words):
    with pytest.raises(SystemExit, match=r"^expected ") as ended:
        bench_throughput.parse(words)
    assert "\n" not in str(ended.value)


def test_what_a_part_leaves_goes_to_those_after_it():
    budget = bench_throughput.Budget(100.0, ["kopt_cold", "other_cold"])
    # 0.34 of 0.74, and then all that is left: 100 s, less the moment between the calls.
    assert budget.next_s("kopt_cold") == pytest.approx(100 * 0.34 / 0.74, rel=0.01)
    assert budget.next_s("other_cold") == pytest.approx(100.0, rel=0.01)


def judged(mixed, verdict, *, wall_s):
    return Judged(
        label=mixed.label,
        candidate=mixed.candidate.candidate_id,
        language=mixed.candidate.language,
        wall_s=wall_s,
        cpu_s=wall_s / 2,
        judged_s=wall_s,
        verdict=verdict,
        reason="trial 0 differs",
    )


def phase_of(mixed, verdicts, *, wall_s):
    phase = Phase(wall_s=wall_s, cpu_s=wall_s / 5)
    for each, verdict in zip(mixed, verdicts, strict=True):
        evaluation = evaluation_of(verdict, problem=each.problem, candidate=each.candidate)
        phase.evaluations[each.candidate.candidate_id] = evaluation
    return phase


def test_ratios_and_disagreements_by_hand():
    mixed = mixed_candidates("cpu", per_problem=1)[:2]  # one right, one that crashes
    wrong = Incorrect(check="values:own", detail="expected 1, found 2")
    # Two in 10 s and in 4 s: 720 and 1,800 an hour.
    kopt = {
        "cold": phase_of(mixed, [correct(1.5), wrong], wall_s=10.0),
        "warm": phase_of(mixed, [correct(1.5), wrong], wall_s=4.0),
    }
    # 40 s each: 90 an hour; 8 s: 450. The second is said to be right.
    other = {
        "cold": [judged(each, "correct", wall_s=40.0) for each in mixed],
        "warm": [judged(each, "correct", wall_s=8.0) for each in mixed],
    }
    found = compared(mixed, kopt=kopt, other=other)
    assert list(found)[-2:] == ["ratio_warm", "ratio"]
    assert found["ratio"] == pytest.approx(8.0)
    assert found["ratio_warm"] == pytest.approx(4.0)
    # 20 s of processors each, against 10 / 5 for two; 4 s, against 4 / 5 for two.
    assert found["cpu_ratio_cold"] == pytest.approx(20.0)
    assert found["cpu_ratio_warm"] == pytest.approx(10.0)
    assert (found["compared"], found["agreeing"]) == (2, 1)
    assert found["disagreements"][0].startswith(f"{mixed[1].label}: kopt incorrect")
    assert found["unlike_intent"] == []


def test_a_side_that_was_left_out_gives_no_ratio(capsys):
    mixed = mixed_candidates("cpu", per_problem=1)[:1]
    found = compared(mixed, kopt={"cold": phase_of(mixed, [correct(1.5)], wall_s=1.0)}, other={})
    assert (found["ratio"], found["ratio_warm"], found["compared"]) == (None, None, 0)
    hardware = {"device_name": "a CPU", "arch": "x86_64", "cores": 2, "versions": {"torch": "2"}}
    report_hardware(hardware)
    report(found)
    assert capsys.readouterr().out.splitlines()[:3] == [
        "a CPU (x86_64), 2 cores; torch 2",
        "verdicts agree on 0 of 0",
        "ratio cold: not measured",
    ]


def test_a_part_is_printed_when_it_ends(capsys):
    mixed = mixed_candidates("cpu", per_problem=1)[:1]
    phase = phase_of(mixed, [correct(1.5)], wall_s=2.0)
    phase.lost.append("one: TimeoutError: ")
    report_phase("cold", phase_figures(phase, mixed))
    report_other("cold", other_figures([judged(mixed[0], "correct", wall_s=4.0)], mixed), name="it")
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("kopt cold: 1800 candidates an hour on a device (1 judged in 2.0 s")
    assert shown[2:] == [
        "  no answer: one: TimeoutError: ",
        "it cold: 900 candidates an hour (1 judged, 4.0 s each, 2.0 s of processors)",
    ]


def test_seconds_of_stages_are_means_over_all_candidates():
    mixed = mixed_candidates("cpu", per_problem=1)[:2]
    phase = phase_of(mixed, [correct(1.5), correct(1.2)], wall_s=1.5)
    # Both have queued 0, built 0, verified 0.25 s and timed 0.5 s.
    assert phase.stages_s() == {"queued": 0.0, "built": 0.0, "verified": 0.25, "timed": 0.5}
    assert phase.on_device() == pytest.approx(1.0)
    assert phase.timed_share() == pytest.approx(2 / 3)


def test_a_device_without_a_record_has_no_share():
    with device_record("cpu") as record:
        time.monotonic()
    assert record.share() is None
    with device_record("cuda", library="libno-such-library.so") as record:
        pass
    assert record.share() is None


def test_the_share_of_a_recorded_sample_is_weighted_by_time_and_ends_with_the_waiting():
    record = DeviceRecord(began_s=10.0)
    record.samples += [(10.5, 0.0), (11.0, 100.0), (12.0, 60.0), (14.0, 0.0)]
    # 0.5 s at 0, 0.5 s at 1, 1 s at 0.6, 2 s at 0.
    assert record.share() == pytest.approx((0.5 + 0.6) / 4.0)
    assert record.share(until_s=12.0) == pytest.approx(1.1 / 2.0)
    assert record.share(until_s=10.1) is None


def test_the_devices_recorded_are_those_that_are_visible(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_devices() == []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-ab")
    assert visible_devices() == ["3", "GPU-ab"]


def test_processor_seconds_are_those_of_a_process_and_all_below_it(tmp_path):
    # pid (name) state parent, nine more words, then utime stime cutime cstime, in hundredths.
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    for pid, parent, ticks in (
        (7, 1, "1 2 3 4"),
        (8, 7, "10 0 0 0"),
        (9, 8, "5 0 0 0"),
        (5, 1, "9"),
    ):
        folder = tmp_path / str(pid)
        folder.mkdir()
        words = f"{pid} (a) b (c) S {parent} 0 0 0 0 0 0 0 0 0 {ticks} 0 0"
        (folder / "stat").write_text(words)
    assert tree_cpu_s(7, proc=tmp_path) == pytest.approx(25 * tick_s)
    began_s = tree_cpu_s()
    assert sum(number * number for number in range(300_000)) > 0
    assert tree_cpu_s() >= began_s
