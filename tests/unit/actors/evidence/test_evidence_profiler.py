"""Profiling on this CPU, for real: timeline, roofline, disagreement; and candidates that fail."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kopt.actors.config import EvaluateConfig
from kopt.actors.evidence import ncu, timelines
from kopt.actors.evidence.capabilities import Ability
from kopt.actors.evidence.counting import Counting
from kopt.actors.evidence.profiler import DeviceProfiler, Profile, Subject
from kopt.candidate import Candidate
from kopt.problem import Problem

HEAD = "import torch\nfrom torch import nn\n\n\n"
PROBLEM = Problem(
    name="mix",
    source=f"""{HEAD}class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(64, 64)

    def forward(self, x):
        return torch.relu(self.mix(x))


def get_inputs():
    return [torch.randn(128, 64)]
""",
)
RIGHT = f"""{HEAD}class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(64, 64)

    def forward(self, x):
        return self.mix(x).clamp_(min=0)
"""


@pytest.fixture(scope="module")
def profiler(tmp_path_factory) -> Iterator[DeviceProfiler]:
    cache = tmp_path_factory.mktemp("cache")
    made = DeviceProfiler(EvaluateConfig(memory_gib=4.0), "cpu", str(cache))
    yield made
    made.close()


def profiled(profiler, *sources, **how) -> list[Profile]:
    candidates = [Candidate(source=source, language="torch") for source in sources]
    subjects = [Subject(problem=PROBLEM, candidate=candidate) for candidate in candidates]
    return profiler.profile(subjects, **how)


def test_a_candidate_s_operations_and_the_reference_s_work_are_seen(profiler) -> None:
    (found,) = profiled(profiler, RIGHT)
    assert found.evidence is not None
    assert found.disagreement == ""
    assert found.evidence.level == "timeline"
    names = {kernel.name for kernel in found.evidence.kernels}
    assert {"aten::addmm", "aten::clamp_"} <= names
    assert found.evidence.timeline is not None
    roofline = found.evidence.roofline
    assert roofline is not None
    assert roofline.matrix_flops == 2.0 * 128 * 64 * 64
    assert roofline.ridge is not None
    assert roofline.sol_us is not None


def test_candidates_of_one_problem_share_its_reference_s_work(profiler) -> None:
    first, second = profiled(profiler, RIGHT, RIGHT.replace("min=0", "min=0.0"))
    assert "roofline" in first.took_s
    assert "roofline" not in second.took_s
    assert first.evidence is not None
    assert second.evidence is not None
    assert first.evidence.roofline == second.evidence.roofline


def test_another_result_than_the_reference_s_is_told(profiler) -> None:
    (found,) = profiled(profiler, RIGHT.replace("min=0", "min=-1"))
    assert found.evidence is not None
    assert "off by" in found.disagreement


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            RIGHT.replace("return self", "raise ValueError('on purpose')\n        return self"),
            "purpose",
        ),
        (RIGHT.replace("return self", "import os; os._exit(7)\n        return self"), "7"),
        ("nonsense(", "SyntaxError"),
    ],
)
def test_a_candidate_that_fails_costs_itself_alone(profiler, source, why) -> None:
    bad, good = profiled(profiler, source, RIGHT)
    assert bad.evidence is None
    assert why in bad.failed
    assert "\n" not in bad.failed
    assert good.evidence is not None


def test_a_candidate_that_hangs_is_bounded(profiler, monkeypatch) -> None:
    monkeypatch.setattr(timelines, "TRACE_S", 1.0)
    source = RIGHT.replace("return self", "while True: pass\n        return self")
    (found,) = profiled(profiler, source)
    assert found.evidence is None
    assert "no answer within 1 s" in found.failed


def test_a_shallow_level_is_no_deeper(profiler) -> None:
    (found,) = profiled(profiler, RIGHT, level="static")
    assert found.evidence is None  # it built nothing, and nothing else was asked for
    assert found.failed


def test_what_the_machine_has_is_looked_for_once(profiler) -> None:
    assert profiler.capabilities() == profiler.capabilities()
    assert profiler.capabilities().roof["tb_per_s"] > 0


def test_energy_is_left_out_where_no_counter_answers_and_that_is_said(profiler) -> None:
    (found,) = profiled(profiler, RIGHT, with_energy=True)
    assert found.evidence is not None
    assert found.energy is None
    assert any(remark.startswith("energy: of GPUs alone") for remark in found.remarks)


def test_each_stage_tells_how_long_it_took(profiler) -> None:
    (found,) = profiled(profiler, RIGHT)
    within = {f"timeline.{stage}" for stage in ("open", "load", "warm", "record", "close")}
    assert {"timeline", "code", "roofline"} | within <= found.took_s.keys()
    assert all(seconds >= 0 for seconds in found.took_s.values())


BUILDS = f"""import ctypes, os, subprocess
from pathlib import Path
{HEAD}
def built():
    folder = Path(os.environ["KOPT_BUILD_DIR"])
    code, library = folder / "own.c", folder / "own.so"
    if not library.exists():
        code.write_text("int own(void) {{ return 3; }}")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(code)], check=True)
    return ctypes.CDLL(str(library))


TIMES = built().own()


class Model(nn.Module):
    def forward(self, x):
        return x * TIMES


class ModelNew(Model):
    pass


def get_inputs():
    return [torch.randn(128, 64)]
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
def test_a_reference_that_builds_an_extension_of_its_own_is_counted(profiler) -> None:
    subject = Subject(
        problem=Problem(name="builds", source=BUILDS),
        candidate=Candidate(source=BUILDS, language="cpp"),
    )
    (found,) = profiler.profile([subject])
    assert found.evidence is not None
    assert found.evidence.roofline is not None, found.remarks
    assert (found.evidence.roofline.flops, found.evidence.roofline.bytes) == (8192.0, 65536.0)


LETS_DOWN = {
    "hangs": ("import time; time.sleep(100)", "did not end within"),
    "refuses": (
        "open(log, 'w').write('==ERROR== ERR_NVGPUCTRPERM - The user does not have permission')",
        "no permission to read GPU counters",
    ),
}


@pytest.mark.parametrize("how", LETS_DOWN)
def test_a_profiler_that_lets_us_down_costs_its_counters_alone(
    profiler, tmp_path, monkeypatch, how
) -> None:
    body, why = LETS_DOWN[how]
    program = tmp_path / "ncu"
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"log = sys.argv[sys.argv.index('--log-file') + 1]\n{body}\n"
    )
    program.chmod(0o755)
    has = replace(
        profiler.capabilities(),
        counters=Ability(ok=True, found="it says"),
        ncu_path=str(program),
        counter_names=("dram__bytes_read.sum",),
        ncu_forks=True,
    )
    monkeypatch.setattr(profiler, "capabilities", lambda: has)
    monkeypatch.setattr(ncu, "START_S", 1.0)
    monkeypatch.setattr(ncu, "JOB_S", 1.0)
    (found,) = profiled(profiler, RIGHT)
    assert found.evidence is not None
    assert found.evidence.level == "timeline"
    (told,) = (remark for remark in found.remarks if why in remark)
    assert "\n" not in told


WAITS_FOR_JOBS = """#!{python}
import json, os, sys, time
open({starts!r}, "a").write("started\\n")
while not os.path.exists(sys.argv[-1]):
    time.sleep(0.01)
task = json.load(open(sys.argv[-1]))
with open(sys.argv[sys.argv.index("--log-file") + 1], "w") as log:
    log.write('"ID","Process ID","Kernel Name","Block Size","Grid Size","CC","a__b.sum"\\n')
    log.write('"","","","","","","byte"\\n')
    log.write('"0","7","k","(128, 1, 1)","(8, 1, 1)","9.0","100"\\n')
with open(task["report"], "w") as report:
    report.write(json.dumps(dict(pid=7, took_s=dict(count=0.5), at_s=time.time())) + "\\n")
"""


def test_what_lasts_begins_the_next_run_of_ncu_when_one_is_done(
    profiler, tmp_path, monkeypatch
) -> None:
    program, starts = tmp_path / "ncu", tmp_path / "starts"
    program.write_text(WAITS_FOR_JOBS.format(python=sys.executable, starts=str(starts)))
    program.chmod(0o755)
    has = replace(
        profiler.capabilities(),
        counters=Ability(ok=True, found="it says"),
        ncu_path=str(program),
        counter_names=("a__b.sum",),
        ncu_forks=True,
    )
    monkeypatch.setattr(profiler, "capabilities", lambda: has)
    one_kernel = (
        f"{HEAD}class ModelNew(nn.Module):\n    def forward(self, x):\n        return x.exp()\n"
    )
    profiler._counting = Counting(profiler._bench)
    profiled(profiler, one_kernel)
    waiting = profiler._counting._ahead
    assert waiting is not None
    (found,) = profiled(profiler, one_kernel)
    assert found.took_s["ncu.count"] == 0.5
    assert profiler._counting._ahead is not waiting  # it was used
    profiled(profiler, one_kernel, level="timeline")
    left = profiler._counting._ahead
    assert left is not None  # nobody needed it
    profiler._counting.close()
    assert starts.read_text() in ("started\n" * 2, "started\n" * 3)  # the last may not have got to
