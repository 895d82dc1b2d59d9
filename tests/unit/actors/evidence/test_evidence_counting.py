"""Which candidates share a run of ncu, and when the one that was begun ahead is of use."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kopt.actors.config import EvaluateConfig
from kopt.actors.evidence.counting import Counting, all_matter
from kopt.actors.evidence.ncu import NcuMeans, NcuRun
from kopt.actors.evidence.progress import Progress
from kopt.actors.evidence.subjects import Subject
from kopt.actors.evidence.workbench import Workbench
from kopt.candidate import Candidate
from kopt.evidence import Timeline
from kopt.problem import Problem
from kopt.tools.collect.kineto import TracedKernel, TraceReport

PROGRAM = """#!{python}
import json, os, sys, time
word = "--kernel-name"
kernels = sys.argv[sys.argv.index(word) + 1] if word in sys.argv else ""
while not os.path.exists(sys.argv[-1]):
    time.sleep(0.01)
jobs = json.load(open(sys.argv[-1]))["jobs"]
report = json.load(open(sys.argv[-1]))["report"]
with open({runs!r}, "a") as runs:
    runs.write(json.dumps([len(jobs), kernels]) + "\\n")
with open(sys.argv[sys.argv.index("--log-file") + 1], "w") as log:
    log.write('"ID","Process ID","Kernel Name","Block Size","Grid Size","CC","a__b.sum"\\n')
    log.write('"","","","","","","byte"\\n')
    for pid in range(len(jobs)):
        log.write(f'"0","{{pid}}","k","(128, 1, 1)","(8, 1, 1)","9.0","{{pid + 100}}"\\n')
with open(report, "w") as lines:
    for pid in range(len(jobs)):
        said = dict(pid=pid, took_s=dict(count=0.5), at_s=time.time())
        lines.write(json.dumps(said) + "\\n")
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Iterator[Workbench]:
    cache = tmp_path_factory.mktemp("cache")
    made = Workbench(EvaluateConfig(), device="cpu", cache_dir=cache, is_lasting=False)
    yield made
    made.close()


@pytest.fixture
def runs(tmp_path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def means(tmp_path, runs) -> NcuMeans:
    program = tmp_path / "ncu"
    program.write_text(PROGRAM.format(python=sys.executable, runs=str(runs)))
    program.chmod(0o755)
    return NcuMeans(path=str(program), counters=("a__b.sum",), forks=True, landlock=False)


def progress(tmp_path, *shares: float, failed: str = "") -> Progress:
    kernels = tuple(
        TracedKernel(name=f"k{number}", owner="user", launches=1, time_us=share, share=share)
        for number, share in enumerate(shares)
    )
    trace = TraceReport(timeline=Timeline(e2e_us=1.0), kernels=kernels, num_calls=1)
    return Progress(
        subject=Subject(
            problem=Problem(name="p", source=""),
            candidate=Candidate(source="", language="triton"),
        ),
        build_dir=tmp_path,
        is_cached=False,
        builds=False,
        trace=trace if shares else None,
        failed=failed,
    )


def counted(bench, means, *under_way, begin=True, with_rules=False) -> list[float | None]:
    counting = Counting(bench)
    if begin:
        counting.begin(means)
        counting.begin(means)  # once is enough
    counting.count(under_way, means, with_rules=with_rules)
    reports = [each.counted.report for each in under_way]
    return [
        None if report is None else report.launches[0].metrics["a__b.sum"] for report in reports
    ]


def test_kernels_of_no_weight_are_told_from_those_that_matter(tmp_path) -> None:
    assert all_matter(progress(tmp_path))
    assert all_matter(progress(tmp_path, 0.7, 0.3))
    assert not all_matter(progress(tmp_path, 0.995, 0.005))
    assert not all_matter(progress(tmp_path, *[1 / 9] * 9))  # eight are counted


def test_a_run_that_was_begun_ahead_counts_all_candidates_together(
    bench, means, runs, tmp_path
) -> None:
    first, second = progress(tmp_path, 0.7, 0.3), progress(tmp_path, 1.0)
    assert counted(bench, means, first, second) == [100.0, 101.0]
    assert runs.read_text() == '[2, ""]\n'
    assert first.took_s["ncu.count"] == 0.5
    assert 0 <= second.took_s["ncu.end"] < 60
    assert "ncu.end" not in first.took_s


def test_where_not_every_kernel_matters_another_run_has_the_filter(
    bench, means, runs, tmp_path
) -> None:
    assert counted(bench, means, progress(tmp_path, 0.995, 0.005)) == [100.0]
    assert runs.read_text() == '[1, "regex:(^|::)(k0)$"]\n'


def test_a_candidate_that_does_not_run_is_not_counted(bench, means, runs, tmp_path) -> None:
    bad, good = progress(tmp_path, failed="import: no"), progress(tmp_path, 1.0)
    assert counted(bench, means, bad, good) == [None, 100.0]
    assert runs.read_text() == '[1, ""]\n'


def test_a_begun_run_that_is_gone_is_begun_again(bench, means, runs, tmp_path) -> None:
    program = Path(means.path)
    once = tmp_path / "once"
    text = program.read_text().replace(
        "import json, os, sys, time\n",
        "import json, os, sys, time\n"
        f"if not os.path.exists({str(once)!r}):\n"
        f"    open({str(once)!r}, 'w').close()\n"
        "    sys.exit(1)\n",
    )
    program.write_text(text)
    counting = Counting(bench)
    counting.begin(means)
    running = counting._ahead._running
    running._process.wait()
    one = progress(tmp_path, 1.0)
    counting.count([one], means, with_rules=False)
    assert one.counted.report is not None
    assert runs.read_text() == '[1, ""]\n'


def test_none_is_begun_after_candidates_that_needed_a_filter_until_others_come(
    bench, means, runs, tmp_path
) -> None:
    counting = Counting(bench)
    counting.count([progress(tmp_path, 0.995, 0.005)], means, with_rules=False)
    counting.begin(means)
    assert counting._ahead is None
    counting.count([progress(tmp_path, 1.0)], means, with_rules=False)
    counting.begin(means)
    assert counting._ahead is not None
    counting.close()
    assert len(runs.read_text().splitlines()) == 2


def test_a_run_that_others_have_begun_is_taken_over(bench, means, runs, tmp_path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    theirs = NcuRun(means, folder=folder)
    theirs.begin(dict(os.environ))
    counting = Counting(bench, ahead=theirs)
    counting.begin(means)  # it is there
    one = progress(tmp_path, 1.0)
    counting.count([one], means, with_rules=False)
    assert one.counted.report is not None
    assert (folder / "ncu.csv").is_file()
    assert runs.read_text() == '[1, ""]\n'


def test_what_was_begun_and_not_needed_is_ended(bench, means, runs) -> None:
    counting = Counting(bench)
    counting.begin(means)
    process = counting._ahead._running._process
    counting.close()
    assert process.poll() is not None
    assert not runs.exists()
