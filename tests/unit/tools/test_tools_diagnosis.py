"""From tools to findings: who is asked, what is kept, what is said of the rest."""

from __future__ import annotations

import pytest

from kopt.evidence import Evidence, KernelEvidence, Roofline
from kopt.testing.planted_evidence import healthy_metrics, one_kernel, planted_evidence
from kopt.tools import Analysis, ProfilingTool, ToolRegistry, diagnose

PLANTED = planted_evidence()
REGISTERS = "launch__registers_per_thread"


@pytest.mark.parametrize("name", PLANTED)
def test_the_right_tool_is_first_for_each_planted_fault(name) -> None:
    evidence, first = PLANTED[name]
    findings = diagnose(evidence).findings
    assert (findings[0].tool if findings else None) == first
    assert len(findings) <= 4


class Reads(ProfilingTool):
    """Speaks of each kernel with more registers than ten."""

    name = "reads"
    title = "Registers"
    source = "ncu"
    required = (REGISTERS,)

    def trigger(self, view):
        return view.need(REGISTERS) > 10

    def analyze(self, view):
        return made(cause="registers")


def made(*, severity="high", cause="", explains=()) -> Analysis:
    return Analysis(
        severity=severity,
        summary="Seen.",
        root_cause="Because.",
        recommendations=("Do.",),
        expected_improvement="2x",
        cause=cause,
        explains=frozenset(explains),
    )


def tool(
    tool_name: str, *, rank: int = 50, within: str = "speed", classes=None, **analysis
) -> ProfilingTool:
    class Speaks(ProfilingTool):
        name = tool_name
        title = tool_name
        source = "ncu"
        required = ()
        priority = rank
        partition = within
        affinity = classes or ProfilingTool.affinity

        def trigger(self, view):
            return True

        def analyze(self, view):
            return made(**analysis)

    return Speaks()


def kernel(name: str = "k", **fields) -> KernelEvidence:
    return KernelEvidence(**{"name": name, "owner": "user", "launches": 1, **fields})


def call(*kernels: KernelEvidence, roofline: Roofline | None = None) -> Evidence:
    return Evidence(
        device="NVIDIA H200", arch="sm_90", level="ncu", kernels=kernels, roofline=roofline
    )


def names(evidence: Evidence, *tools: ProfilingTool, most: int | None = None) -> list[str]:
    found = diagnose(evidence, tools=tools, max_findings=most).findings
    return [finding.tool for finding in found]


def test_the_class_decides_who_is_asked() -> None:
    for_memory = tool("memory", classes=("memory",))
    for_compute = tool("compute", classes=("compute", "mixed"))
    energy = tool("energy", within="energy", classes=("compute",))
    asked = diagnose(
        call(kernel(), roofline=Roofline(bottleneck="memory", theoretical="memory")),
        tools=[for_memory, for_compute, energy],
    )
    assert [each.tool for each in asked.findings] == ["memory"]
    assert asked.not_asked == ("compute",)
    assert [each.tool for each in asked.energy_notes] == ["energy"]
    assert asked.classes == ("memory",)


def test_without_a_class_everyone_is_asked() -> None:
    pair = [tool("memory", classes=("memory",)), tool("compute", classes=("compute",))]
    assert names(call(kernel()), *pair) == ["compute", "memory"]


def test_where_theory_and_measurement_differ_tools_of_both_are_asked() -> None:
    pair = [tool("memory", classes=("memory",)), tool("compute", classes=("compute",))]
    roofline = Roofline(bottleneck="compute", theoretical="compute", measured="memory")
    assert names(call(kernel(), roofline=roofline), *pair) == ["compute", "memory"]


def test_the_present_kernel_s_own_class_is_asked_too() -> None:
    waits = tool("latency", classes=("latency",))
    roofline = Roofline(bottleneck="memory", theoretical="memory")
    idle = {
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 30.0,
    }
    assert names(call(kernel(metrics=idle), roofline=roofline), waits) == ["latency"]
    assert names(call(kernel(), roofline=roofline), waits) == []


def test_rank_is_severity_then_priority_then_share() -> None:
    low = tool("low_first", rank=99, severity="medium")
    middle = tool("middle", rank=10, severity="high")
    top = tool("top", rank=20, severity="high")
    assert names(call(kernel()), low, middle, top) == ["top", "middle", "low_first"]


def test_findings_of_one_root_cause_are_one() -> None:
    first = tool("first", rank=20, cause="registers")
    second = tool("second", rank=10, cause="registers")
    assert names(call(kernel()), second, first) == ["first"]


def test_a_symptom_goes_where_its_cause_is_named_however_severe() -> None:
    symptom = tool("symptom", severity="critical", cause="stall:x")
    cause = tool("cause", severity="medium", explains={"stall:x"})
    assert names(call(kernel()), symptom, cause) == ["cause"]


def test_two_that_explain_each_other_leave_the_first_in_rank() -> None:
    one = tool("one", rank=20, cause="a", explains={"b"})
    other = tool("other", rank=10, cause="b", explains={"a"})
    assert names(call(kernel()), one, other) == ["one"]


def test_a_cause_in_another_kernel_explains_nothing() -> None:
    class Stall(Reads):
        name = "stall"

        def trigger(self, view):
            return view.kernel.name == "a"

        def analyze(self, view):
            return made(cause="stall")

    class Cause(Reads):
        name = "cause"

        def trigger(self, view):
            return view.kernel.name == "b"

        def analyze(self, view):
            return made(explains={"stall"})

    metrics = {REGISTERS: 20.0}
    evidence = call(kernel("a", metrics=metrics), kernel("b", metrics=metrics))
    assert names(evidence, Stall(), Cause()) == ["cause", "stall"]


def test_one_tool_s_findings_in_several_kernels_are_one_that_names_them() -> None:
    metrics = {REGISTERS: 20.0}
    small = kernel("small", share=0.2, metrics=metrics)
    large = kernel("large", share=0.8, metrics=metrics)
    (finding,) = diagnose(call(small, large), tools=[Reads()]).findings
    assert finding.kernel == "large"
    assert finding.summary == "Seen. Also in `small`."


def test_only_the_candidate_s_kernels_of_a_tenth_or_more_deserve_findings() -> None:
    metrics = {REGISTERS: 20.0}
    assert names(call(kernel(share=0.1, metrics=metrics)), Reads()) == ["reads"]
    assert names(call(kernel(share=0.09, metrics=metrics)), Reads()) == []
    assert names(call(kernel(owner="library", metrics=metrics)), Reads()) == []
    assert names(call(kernel(owner="aten", metrics=metrics)), Reads()) == []


def test_at_most_so_many_findings_and_the_rest_are_counted() -> None:
    tools = [tool(f"t{number}", rank=number) for number in range(9)]
    asked = diagnose(call(kernel()), tools=tools)
    assert [each.tool for each in asked.findings] == ["t8", "t7", "t6", "t5"]
    assert asked.left_out == 5
    assert len(diagnose(call(kernel()), tools=tools, max_findings=None).findings) == 9
    assert diagnose(call(kernel()), tools=tools, max_findings=0).left_out == 9


def test_a_missing_figure_is_named_once_over_all_kernels() -> None:
    evidence = call(kernel("a"), kernel("b", metrics={REGISTERS: 5.0}))
    (silent,) = diagnose(evidence, tools=[Reads()]).silent
    assert (silent.tool, silent.missing) == ("reads", (REGISTERS,))


def test_a_figure_that_is_not_finite_is_missing() -> None:
    evidence = call(kernel(metrics={REGISTERS: float("nan")}))
    (silent,) = diagnose(evidence, tools=[Reads()]).silent
    assert silent.missing == (REGISTERS,)


def test_a_tool_that_breaks_is_told_and_the_others_go_on() -> None:
    class Broken(Reads):
        name = "broken"

        def trigger(self, view):
            return 1 / 0

    evidence = call(kernel(metrics={REGISTERS: 20.0}))
    asked = diagnose(evidence, tools=[Broken(), Reads()])
    assert [each.tool for each in asked.findings] == ["reads"]
    assert asked.silent[0].fault == "ZeroDivisionError: division by zero"


def test_a_tool_that_asks_for_a_figure_that_cannot_be_is_told() -> None:
    class Misspelt(Reads):
        name = "misspelt"
        required = ("timeline.sinks",)

    (silent,) = diagnose(call(kernel()), tools=[Misspelt()]).silent
    assert "no figure 'timeline.sinks'" in silent.fault


def test_every_tool_bears_evidence_of_nothing_and_of_a_single_zero() -> None:
    for evidence in (call(), call(kernel()), call(kernel(metrics={"dram__bytes_read.sum": 0.0}))):
        asked = diagnose(evidence)
        assert asked.findings == ()
        assert [silent for silent in asked.silent if silent.fault] == []


def test_zeros_everywhere_break_no_tool() -> None:
    zeros = dict.fromkeys(healthy_metrics(), 0.0)
    evidence = one_kernel(zeros, sass={"NOP": 0})
    assert [each for each in diagnose(evidence).silent if each.fault] == []


def test_all_tools_of_the_paper_and_ours_are_registered() -> None:
    names_there = ToolRegistry.names()
    assert len([name for name in names_there if "/" not in name]) == 24
    energy = [name for name in names_there if name.startswith("energy_")]
    assert len(energy) == 5
