"""The doctor's table of profilers: a row each, its fix where it is off, the level that follows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kopt.actors.evidence.capabilities import (
    Ability,
    Capabilities,
    fingerprint,
    save_capabilities,
)
from kopt.cli.probe import Probe
from kopt.cli.probe_profilers import profiler_probes

ON = Ability(ok=True, found="it answers")
OFF = Ability(ok=False, found="no permission to read GPU counters", fix="run as root")
ALL = Capabilities(
    device="cuda",
    fingerprint=fingerprint("cuda"),
    counters=ON,
    timeline=ON,
    disassembly=ON,
    energy=ON,
    ncu_path="/opt/ncu",
    counter_names=("a.sum",),
)


def table(found: Capabilities, tmp_path) -> dict[str, Probe]:
    save_capabilities(found, tmp_path)
    return {row.name: row for row in profiler_probes(cache=tmp_path, device="cuda")}


def test_each_profiler_has_a_row_and_the_level_follows(tmp_path) -> None:
    rows = table(ALL, tmp_path)
    assert list(rows) == ["ncu", "timeline", "disassembly", "energy", "evidence"]
    assert all(row.ok for row in rows.values())
    assert rows["evidence"].found == "ncu: counters, timeline and code"


@pytest.mark.parametrize(
    ("off", "level", "ok"),
    [
        ({"counters": OFF}, "timeline: timeline and code", True),
        ({"counters": OFF, "timeline": OFF}, "static: code and times alone", False),
    ],
)
def test_what_is_off_says_why_and_what_to_do(tmp_path, off, level, ok) -> None:
    rows = table(replace(ALL, **off), tmp_path)
    assert (rows["ncu"].ok, rows["ncu"].found, rows["ncu"].fix) == (False, OFF.found, OFF.fix)
    assert (rows["evidence"].found, rows["evidence"].ok) == (level, ok)
    assert bool(rows["evidence"].fix) is not ok


def test_counters_that_a_gpu_lacks_are_told_of(tmp_path) -> None:
    rows = table(replace(ALL, missing_counters=("b.sum", "c.sum")), tmp_path)
    assert "lacks 2 counters: their tools stay silent" in rows["evidence"].found
