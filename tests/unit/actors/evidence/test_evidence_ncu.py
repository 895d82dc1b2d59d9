"""Runs of ncu: what it is asked, how its words are read, and every way in which it lets us down.

A program in ncu's place prints what ncu prints; what it would start is started where that says so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kopt.actors.evidence import ncu
from kopt.actors.evidence.ncu import NcuJob, NcuMeans, count, ncu_command
from kopt.actors.evidence.order import Order
from kopt.actors.supervisor.environment import child_environment
from kopt.tools.counters import CORE_COUNTERS

PAGE = (
    '"ID","Process ID","Kernel Name","Block Size","Grid Size","CC","dram__bytes_read.sum"\\n'
    '"","","","","","","byte"\\n'
    '"0","11","exp_kernel","(128, 1, 1)","(8, 1, 1)","9.0","1,024"\\n'
    '"1","12","exp_kernel","(128, 1, 1)","(8, 1, 1)","9.0","n/a"\\n'
)
STARTS = (
    "import json, sys\n"
    "task = json.load(open(sys.argv[-1]))\n"
    "log = sys.argv[sys.argv.index('--log-file') + 1]\n"
)


def means(tmp_path, body, *, forks=True) -> NcuMeans:
    """A program that stands for ncu."""
    program = tmp_path / "ncu"
    program.write_text(f"#!{sys.executable}\n{STARTS}{body}")
    program.chmod(0o755)
    return NcuMeans(path=str(program), counters=CORE_COUNTERS, forks=forks, landlock=False)


def job(tmp_path, name="job") -> NcuJob:
    folder = tmp_path / name
    folder.mkdir()
    order = Order(
        look="trace",
        reference="",
        candidate="",
        dtype=None,
        module_mode="train",
        matmul_tf32=False,
        cudnn_tf32=True,
        num_threads=1,
    )
    environment = child_environment(
        scratch=folder, num_threads=1, cache_dir=tmp_path, build_dir=folder
    )
    return NcuJob(
        order=order.to_json(),
        environment=environment,
        folder=str(folder),
        writable=(str(folder),),
        landlock=False,
    )


def said(*jobs: dict[str, object]) -> str:
    lines = "".join(json.dumps(each) + "\n" for each in jobs)
    return f"open(task['report'], 'w').write({lines!r})\n"


def run(tmp_path, body, *, jobs=1, forks=True) -> list[ncu.Counted]:
    folder = tmp_path / "run"
    folder.mkdir()
    wanted = [job(tmp_path, f"job{number}") for number in range(jobs)]
    found = means(tmp_path, body, forks=forks)
    return count(wanted, means=found, kernels=["exp_kernel"], folder=folder)


def test_clocks_are_never_touched_and_only_what_matters_is_counted(tmp_path) -> None:
    found = NcuMeans(path="ncu", counters=("a.sum", "b.sum"), forks=True, landlock=True)
    kernels = ["void ns::scale<float>(float*, int)", "_fused_0"]
    command = " ".join(ncu_command(found, kernels=kernels, folder=tmp_path, with_rules=False))
    assert "--clock-control none" in command
    assert "--cache-control all" in command
    assert "--replay-mode kernel" in command
    assert "--profile-from-start off" in command
    assert "--metrics a.sum,b.sum" in command
    assert "--kernel-name regex:(^|::)(_fused_0|scale)$" in command
    assert "--csv --page raw --print-units base" in command
    assert "--lock" not in command


def test_rules_need_a_report_to_read_two_pages_of(tmp_path) -> None:
    found = NcuMeans(path="ncu", counters=("a.sum",), forks=True, landlock=True)
    command = ncu_command(found, kernels=(), folder=tmp_path, with_rules=True)
    assert "--export" in command
    assert command.count("--section") == len(ncu.RULE_SECTIONS)
    assert "--kernel-name" not in command


def test_each_candidate_gets_what_its_own_process_launched(tmp_path) -> None:
    body = said({"pid": 11, "failed": ""}, {"pid": 12, "failed": ""})
    first, second = run(tmp_path, f"{body}open(log, 'w').write('{PAGE}')", jobs=2)
    assert first.report is not None
    assert second.report is not None
    assert first.report.launches[0].metrics["dram__bytes_read.sum"] == 1024.0
    assert second.report.launches[0].metrics["dram__bytes_read.sum"] is None
    assert first.report.arch == "sm_90"


def test_what_a_job_says_of_its_stages_is_told_and_nothing_else_of_it(tmp_path) -> None:
    took = {"start": 4.5, "load": 1, "warm": -1.0, "count": "long", "x" * 99: 2.0}
    body = said({"pid": 11, "failed": "", "took_s": took}, {"pid": 12, "failed": "", "took_s": 7})
    first, second = run(tmp_path, f"{body}open(log, 'w').write('{PAGE}')", jobs=2)
    assert first.took_s == {"start": 4.5, "load": 1.0, "x" * 20: 2.0}
    assert second.took_s == {}


def test_one_that_failed_costs_the_others_nothing(tmp_path) -> None:
    body = said({"pid": 11, "failed": "Traceback\nValueError: no"}, {"pid": 12, "failed": ""})
    first, second = run(tmp_path, f"{body}open(log, 'w').write('{PAGE}')", jobs=2)
    assert (first.report, first.failed) == (None, "ncu: ValueError: no")
    assert second.report is not None


def test_one_that_launched_nothing_is_named(tmp_path) -> None:
    body = said({"pid": 77, "failed": ""})
    (found,) = run(tmp_path, f"{body}open(log, 'w').write('{PAGE}')")
    assert found.failed == "ncu: none of its kernels were counted"


def test_without_forks_all_that_was_launched_is_the_one_candidate_s(tmp_path) -> None:
    body = said({"pid": 77, "failed": ""})
    (found,) = run(tmp_path, f"{body}open(log, 'w').write('{PAGE}')", forks=False)
    assert found.report is not None
    assert len(found.report.launches) == 2


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            "open(log, 'w').write('==ERROR== ERR_NVGPUCTRPERM - The user does not have "
            "permission to access NVIDIA GPU Performance Counters')",
            "no permission to read GPU counters",
        ),
        ("open(log, 'w').write('==WARNING== No kernels were profiled.')", "no kernel ran"),
        ("open(log, 'w').write('')", "empty"),
        ("print('ncu: cannot open display'); sys.exit(1)", "cannot open display"),
        (f"open(log, 'w').write('{PAGE}'[:120])", "ncu"),
    ],
)
def test_what_ncu_could_not_do_is_one_line(tmp_path, body, why) -> None:
    (found,) = run(tmp_path, body)
    assert found.report is None
    assert why in found.failed
    assert "\n" not in found.failed


def test_a_profiler_that_hangs_is_bounded(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ncu, "START_S", 0.5)
    monkeypatch.setattr(ncu, "JOB_S", 0.5)
    (found,) = run(tmp_path, "import time; time.sleep(100)")
    assert "did not end within" in found.failed


def test_a_program_that_is_not_there_is_named(tmp_path) -> None:
    gone = NcuMeans(path="/nowhere/ncu", counters=("a.sum",), forks=True, landlock=False)
    (found,) = count([job(tmp_path)], means=gone, kernels=(), folder=tmp_path)
    assert "nowhere" in found.failed


@pytest.mark.parametrize("forks", [True, False])
def test_the_program_that_ncu_starts_reports_each_job(tmp_path, forks) -> None:
    """Here it finds no GPU, which it has to say of each."""
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU: test_gpu_profile runs it")
    jobs = 2 if forks else 1
    body = (
        "import subprocess\n"
        "at = next(n for n, word in enumerate(sys.argv) if word.endswith('python')\n"
        "          or 'python3' in word.rsplit('/', 1)[-1])\n"
        "subprocess.run(sys.argv[at:])\n"
        f"open(log, 'w').write('{PAGE}')"
    )
    found = run(tmp_path, body, jobs=jobs, forks=forks)
    assert len(found) == jobs
    assert all("CUDA" in each.failed or "NVIDIA" in each.failed for each in found), found
    lines = (Path(tmp_path) / "run" / "report.jsonl").read_text().splitlines()
    said_of = [json.loads(line) for line in lines]
    assert len({each["pid"] for each in said_of}) == jobs
    assert "start" in said_of[0]["took_s"]


def test_the_program_that_ncu_starts_waits_for_its_jobs_as_long_as_somebody_may_bring_them(
    tmp_path,
) -> None:
    pytest.importorskip("torch")
    from kopt.actors.evidence.forward_once import _awaited

    task_file = tmp_path / "task.json"
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert _awaited(task_file, owner=ended.pid) is None
    bring = f"import time; time.sleep(0.2); open({str(task_file)!r}, 'w').write('7')"
    bringing = subprocess.Popen([sys.executable, "-c", bring])
    assert _awaited(task_file, owner=os.getpid()) == 7
    bringing.wait()
