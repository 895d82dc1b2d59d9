"""Profiles in prompts: each arm's sections, techniques by class, a model's analysis read safely."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopt.evidence import Evidence, Roofline
from kopt.ports import Telling
from kopt.prompts import build
from kopt.prompts.analysis import build_analysis, read_analysis
from kopt.prompts.budget import Budget
from kopt.prompts.builder import stable_part
from kopt.prompts.profile_text import profile_text, told_of
from kopt.prompts.tool_offers import ToolOffers, offers_of
from kopt.tools.registry import ToolRegistry
from kopt.tools.techniques import MAX_TECHNIQUES, TECHNIQUES, techniques_for, techniques_of

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "prompts"
CASES: dict[str, Any] = runpy.run_path(str(GOLDEN / "regen_prompts.py"))


def headings(arm: str) -> list[str]:
    text = build(CASES["profiled"](arm))[-1].text
    return [line[4:] for line in text.splitlines() if line.startswith("### ")]


def test_each_arm_has_its_sections_in_the_paper_s_order() -> None:
    analysis = "Automated bottleneck analysis"
    assert headings("tools") == ["Kernels", analysis, "Techniques that apply", "Counters"]
    assert headings("reactive") == headings("tools")
    assert headings("rules") == ["Nsight Compute", "Techniques that apply"]
    assert headings("raw") == ["Counters"]
    assert headings("none") == []
    assert headings("analysis") == ["Kernels", "Analysis", "Techniques that apply"]


@pytest.mark.parametrize("arm", sorted(CASES["ARMS"]))
def test_arms_differ_in_what_is_told_of_the_profile_and_nowhere_else(arm: str) -> None:
    made = CASES["profiled"](arm)
    system, user = build(made)
    stable_system, stable_user = stable_part(made)
    assert system == stable_system
    assert user.text.startswith(stable_user.text)
    without, _, rest = user.text.partition("## What the profiler found")
    none = build(CASES["profiled"]("none"))[-1].text
    assert none.startswith(without.rstrip())
    assert none.endswith(rest.rsplit("\n\n", 1)[-1] if rest else "")


def test_a_prompt_has_one_speed_of_light() -> None:
    made = CASES["profiled"]("tools")
    parent = made.parent
    assert parent.evidence.roofline.sol_us is not None
    assert build(made)[-1].text.casefold().count("speed of light of the problem") == 1
    assert "Speed of light:" not in build(made)[-1].text
    timing = replace(parent.evaluation.verdict.timing, sol_us=None)
    verdict = replace(parent.evaluation.verdict, timing=timing)
    unknown = replace(parent, evaluation=replace(parent.evaluation, verdict=verdict))
    text = build(replace(made, parent=unknown))[-1].text
    assert f"Speed of light: {parent.evidence.roofline.sol_us:.1f} us." in text


def test_a_speed_of_light_that_leaves_most_inputs_out_is_no_aim() -> None:
    made = CASES["profiled"]("tools")
    parent = made.parent
    timing = replace(parent.evaluation.verdict.timing, sol_us=0.05, time_us=140.0)
    verdict = replace(parent.evaluation.verdict, timing=timing)
    far = replace(parent, evaluation=replace(parent.evaluation, verdict=verdict))
    text = build(replace(made, parent=far))[-1].text
    assert "speed of light of the problem" not in text
    assert "0% of the speed of light" not in text
    assert f"Speed of light: {parent.evidence.roofline.sol_us:.1f} us." in text


def test_a_speed_of_light_says_that_it_counts_bytes_alone() -> None:
    text = build(CASES["profiled"]("tools"))[-1].text
    line = next(each for each in text.splitlines() if "speed of light of the problem" in each)
    assert line.endswith("| inputs and outputs moved once; operations do not count |")


def test_a_profile_keeps_to_its_budget() -> None:
    made = CASES["profiled"]("raw")
    text = build(made, budget=Budget(profile=600))[-1].text
    told = text.partition("## What the profiler found")[2].rpartition("\n\n")[0]
    assert len(told) < 700
    assert "left out" in told


def test_findings_are_those_that_were_made_and_no_tool_is_asked_again() -> None:
    attempt = replace(CASES["profiled"]("tools").parent, findings=(CASES["FINDING"],))
    text = profile_text(attempt, telling=Telling(), max_characters=12_000)
    assert "DRAM bandwidth half used" in text
    assert "Uncoalesced" not in text
    with pytest.raises(ValueError, match="expected an attempt with evidence"):
        told_of(replace(attempt, evidence=None), telling=Telling())


def offers() -> ToolOffers:
    made = offers_of(CASES["profiled"]("reactive"))
    assert made is not None
    return made


def test_every_tool_of_speed_is_offered_under_a_name_that_endpoints_take() -> None:
    speed = [tool for tool in ToolRegistry.tools() if tool.partition != "energy"]
    names = [each["function"]["name"] for each in offers().functions()]
    assert len(names) == len(speed) >= 15
    assert all(name.replace("_", "").replace("-", "").isalnum() for name in names)


def test_a_call_says_what_was_found_or_why_nothing() -> None:
    made = offers()
    assert "sectors" in made.call("memory_coalescing")
    answers = {name: made.call(name) for name in made.tools}
    assert all(answers.values())
    assert any("does not show it" in text for text in answers.values())
    assert any(
        text.startswith("Nothing can be said: the profile lacks") for text in answers.values()
    )


def test_techniques_are_for_the_class_the_device_and_the_work() -> None:
    memory = techniques_for("memory", arch="sm_90", has_matrix_work=False)
    assert any("16 bytes a thread" in text for text in memory)
    assert not any("tensor cores" in text for text in memory)
    compute = techniques_for("compute", arch="sm_90", has_matrix_work=True)
    assert any("tensor cores" in text for text in compute)
    old = techniques_for("compute", arch="sm_60", has_matrix_work=True)
    assert not any("tensor cores" in text or "cp.async" in text for text in old)
    cpu = techniques_for("memory", arch="x86_64", has_matrix_work=False)
    assert any("core's L2" in text for text in cpu)
    assert not any("warp" in text for text in cpu)


def test_a_list_is_short_and_each_class_has_one_everywhere() -> None:
    for bottleneck in ("compute", "memory", "latency", "mixed"):
        for arch in ("sm_80", "sm_90", "aarch64"):
            for has_matrix_work in (False, True):
                made = techniques_for(bottleneck, arch=arch, has_matrix_work=has_matrix_work)  # type: ignore[arg-type]
                assert 1 <= len(made) <= MAX_TECHNIQUES
    assert len({each.text for each in TECHNIQUES}) == len(TECHNIQUES)


def test_where_no_class_is_known_or_nothing_is_left_no_technique_is_listed() -> None:
    bare = Evidence(device="d", arch="sm_90", level="static")
    assert techniques_of(bare) == ()
    known = replace(bare, roofline=Roofline(bottleneck="memory"))
    assert techniques_of(known)
    assert techniques_of(known, tier="near-optimal") == ()
    assert techniques_of(known, tier="underutilized") == techniques_for(
        "latency", arch="sm_90", has_matrix_work=False
    )


def test_the_analyst_reads_the_version_and_what_the_tools_found() -> None:
    system, user = build_analysis(CASES["analysed"]())
    assert "You read profiles" in system.text
    assert "class ModelNew" in user.text
    assert "Uncoalesced global memory" in user.text
    assert '"bottleneck"' in user.text


def test_an_analysis_is_found_in_fences_after_thoughts_and_among_other_objects() -> None:
    given = {
        "bottleneck": "Latency",
        "severity": "CRITICAL",
        "steps": ["Fuse."],
        "summary": " a\nb",
    }
    text = f"<think>{{}}</think>Not {{this}}.\n```json\n{json.dumps(given)}\n```"
    reading = read_analysis(text)
    assert reading.fault == ""
    assert reading.analysis is not None
    assert (reading.analysis.bottleneck, reading.analysis.severity) == ("latency", "critical")
    assert reading.analysis.summary == "a b"


@given(
    st.text(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=10),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["bottleneck", "severity", "steps", "summary"]), inner
            )
        ),
        max_leaves=6,
    ).map(json.dumps)
)
def test_any_words_are_read_within_bounds(text: str) -> None:
    reading = read_analysis(text)
    assert (reading.analysis is None) == bool(reading.fault)
    assert "\n" not in reading.fault


def test_braces_without_end_are_read_at_once() -> None:
    assert read_analysis("{" * 200_000).analysis is None
    assert read_analysis('{"a":' * 100_000).analysis is None
