"""What the probe does about an ncu that does not know every counter, by a program in its place."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.actors.config import EvaluateConfig
from kopt.actors.evidence import capabilities
from kopt.actors.evidence import probe as probe_module
from kopt.actors.evidence.ncu import NcuMeans, NcuRun, count
from kopt.actors.evidence.probe import _accepted
from kopt.actors.evidence.workbench import Workbench
from kopt.tools.counters import CORE_COUNTERS

PROGRAM = """#!{python}
import json, sys
asked = sys.argv[sys.argv.index("--metrics") + 1].split(",")
task = json.load(open(sys.argv[-1]))
unknown = [name for name in asked if name.split(".")[0] in {unknown!r}]
with open(sys.argv[sys.argv.index("--log-file") + 1], "w") as log:
    if unknown:
        name = unknown[0].split(".")[0]
        log.write("==ERROR== Failed to find metric regex:^" + name + "\\\\.(sum|min|max)$\\n")
        sys.exit(9)
    log.write('"ID","Process ID","Kernel Name","Block Size","Grid Size","CC","a__b.sum"\\n')
    log.write('"","","","","","","byte"\\n')
    log.write('"0","11","k","(128, 1, 1)","(8, 1, 1)","9.0","1,024"\\n')
with open(task["report"], "w") as report:
    report.write(json.dumps({{"pid": 11}}) + "\\n")
"""


COUNTS_STARTS = """import json, os, sys, time
with open(%r, "a") as starts:
    starts.write(sys.argv[sys.argv.index("--metrics") + 1] + "\\n")
while not os.path.exists(sys.argv[-1]):
    time.sleep(0.01)
"""


@pytest.fixture
def bench(tmp_path):
    made = Workbench(EvaluateConfig(), device="cpu", cache_dir=tmp_path / "cache", is_lasting=False)
    yield made
    made.close()


def means(tmp_path, *, unknown: tuple[str, ...]) -> NcuMeans:
    program = tmp_path / "ncu"
    program.write_text(PROGRAM.format(python=sys.executable, unknown=unknown))
    program.chmod(0o755)
    counters = ("a__b.sum", "c__d", "e__f.pct")
    return NcuMeans(path=str(program), counters=counters, forks=True, landlock=False)


def test_counters_that_ncu_refuses_are_left_out_one_after_the_other(bench, tmp_path) -> None:
    found, why = _accepted(bench, means(tmp_path, unknown=("c__d", "e__f")))
    assert (found.counters, why) == (("a__b.sum",), "")


def test_an_ncu_that_refuses_every_counter_fails_with_its_last_word(bench, tmp_path) -> None:
    found, why = _accepted(bench, means(tmp_path, unknown=("a__b", "c__d", "e__f")))
    assert len(found.counters) == 1
    assert "does not have: e__f" in why


def test_a_run_that_was_begun_is_used_where_its_means_are_those_wanted(bench, tmp_path) -> None:
    wanted = replace(means(tmp_path, unknown=()), counters=("a__b.sum",))
    starts = tmp_path / "starts"
    program = Path(wanted.path)
    program.write_text(program.read_text().replace("import json, sys", COUNTS_STARTS % str(starts)))
    for counters in (("a__b.sum",), ("a__b.sum", "c__d")):
        starts.write_text("")
        with bench.folder() as folder:
            run = NcuRun(replace(wanted, counters=counters), folder=folder)
            begun = (replace(wanted, counters=counters), run)
            run.begin(bench.ncu_environment(folder))
            assert _accepted(bench, wanted, begun=begun) == (wanted, "")
            run.close()
        # Another one may be ended before it says that it has started.
        begins = [line for line in starts.read_text().splitlines() if line != "a__b.sum,c__d"]
        assert begins == ["a__b.sum"]


REFUSES = """#!{python}
import sys
if "--metrics" in sys.argv:
    with open(sys.argv[sys.argv.index("--log-file") + 1], "w") as log:
        log.write("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access\\n")
    sys.exit(1)
print("NVIDIA (R) Nsight Compute Command Line Profiler\\nVersion 2025.3.1.0")
"""


def test_without_permission_the_probe_says_so_once_and_how_to_get_it(
    bench, tmp_path, monkeypatch
) -> None:
    program = tmp_path / "ncu"
    program.write_text(REFUSES.format(python=sys.executable))
    program.chmod(0o755)
    for module in (probe_module, capabilities):
        monkeypatch.setattr(module, "find_tool", lambda _: str(program))
    runs = []
    monkeypatch.setattr(probe_module, "count", lambda *_, **how: runs.append(1) or count(*_, **how))
    ability, found, missing = probe_module._counters(bench, names=CORE_COUNTERS)
    assert (ability.ok, found, missing) == (False, None, ())
    assert "no permission to read GPU counters" in ability.found
    assert "NVreg_RestrictProfilingToAdminUsers=0" in ability.fix
    assert len(runs) == 1  # other ways would be refused alike
