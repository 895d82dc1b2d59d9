"""The conformance suite of a micro-profiling tool: what each keeps, whatever it looks for.

Subclass it in a test file and fill in three members; pytest collects the rest:

    class TestMine(ToolSuite):
        tool = MyTool()

        def triggering(self):
            return one_kernel(healthy_metrics({"launch__block_size": 32.0}))

        def healthy(self):
            return one_kernel(healthy_metrics())

`kopt.testing.planted_evidence` has counters to start from.
"""

# ruff: noqa: D102 - the names of the tests are the sentences that they prove

from __future__ import annotations

import copy
import json
import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from kopt.evidence import Evidence, KernelEvidence
from kopt.finding import SEVERITIES, Finding
from kopt.tools.diagnosis import Diagnosis, diagnose
from kopt.tools.registry import tool_faults
from kopt.tools.tool import ProfilingTool
from kopt.tools.view import View


class ToolSuite(ABC):
    """Subclass this, fill in the three members, and name the subclass Test…."""

    tool: ClassVar[ProfilingTool]

    @abstractmethod
    def triggering(self) -> Evidence:
        """Return evidence on which the tool speaks."""

    @abstractmethod
    def healthy(self) -> Evidence:
        """Return evidence on which it has nothing to say, with every figure that it requires."""

    def test_the_5_tuple_is_whole(self) -> None:
        assert tool_faults(type(self.tool)) == []
        assert len(set(self.tool.required)) == len(self.tool.required)

    def test_it_speaks_where_its_pattern_is(self) -> None:
        findings = self._findings(self.triggering())
        assert findings
        for finding in findings:
            assert finding.tool == self.tool.name
            assert finding.severity in SEVERITIES
            assert all((finding.summary, finding.root_cause, finding.expected_improvement))
            assert finding.recommendations
            assert all(finding.recommendations)
            assert all(math.isfinite(value) for value in finding.observed.values())
            json.dumps(asdict(finding), allow_nan=False)

    def test_it_says_nothing_of_healthy_evidence(self) -> None:
        asked = self._asked(self.healthy())
        assert _all_findings(asked) == []
        assert asked.silent == ()

    def test_without_a_required_figure_it_is_silent_and_names_it(self) -> None:
        for name in self.tool.required:
            asked = self._asked(without(self.triggering(), name))
            assert _all_findings(asked) == [], name
            assert name in asked.silent[0].missing, name

    def test_without_any_figure_it_is_silent_and_no_fault(self) -> None:
        bare = Evidence(device="unknown", arch="unknown", level="static")
        asked = self._asked(bare)
        assert _all_findings(asked) == []
        assert [silent.fault for silent in asked.silent] in ([], [""])

    def test_it_leaves_the_evidence_alone_and_says_the_same_again(self) -> None:
        evidence = self.triggering()
        before = copy.deepcopy(evidence)
        first = self._findings(evidence)
        assert evidence == before
        assert self._findings(evidence) == first

    def test_it_reads_no_figure_that_it_does_not_declare(self) -> None:
        declared = {*self.tool.required, *self.tool.optional}
        for evidence in (self.triggering(), self.healthy()):
            view = RecordingView(evidence=evidence)
            views = [view.of(each) for each in evidence.kernels if each.owner == "user"]
            for each in views if self.tool.scope == "kernel" else [view]:
                if self.tool.trigger(each):
                    self.tool.analyze(each)
            assert view.names <= declared, view.names - declared

    def test_notes_on_energy_stay_below_findings_of_speed(self) -> None:
        if self.tool.partition == "energy":
            assert {finding.severity for finding in self._findings(self.triggering())} == {"low"}

    def _asked(self, evidence: Evidence) -> Diagnosis:
        # Of a class that the tool is for: what is tested is the tool, not the choice of tools.
        roofline = evidence.roofline
        if roofline is not None:
            roofline = replace(roofline, bottleneck=self.tool.affinity[0], measured=None)
        asked = replace(evidence, roofline=roofline)
        return diagnose(asked, tools=[self.tool], max_findings=None)

    def _findings(self, evidence: Evidence) -> list[Finding]:
        return _all_findings(self._asked(evidence))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingView(View):
    """A view that remembers the names that were asked for."""

    names: set[str] = field(default_factory=set)

    def get(self, name: str) -> float | None:
        self.names.add(name)
        return View.get(self, name)

    def of(self, kernel: KernelEvidence) -> View:
        return replace(self, kernel=kernel)


def without(evidence: Evidence, name: str) -> Evidence:
    """Return the evidence with one figure unknown; a part of it where it cannot be alone."""
    part, _, field_name = name.partition(".")
    gone: dict[str, Any] = {field_name: None}
    if name.startswith("sass:"):
        part, gone = "kernel", {"sass": {}}
    if name == "timeline.e2e_us":
        part, gone = "evidence", {"timeline": None}
    if part == "evidence":
        return replace(evidence, **gone)
    if part in ("timeline", "roofline", "energy"):
        holder = getattr(evidence, part)
        return evidence if holder is None else replace(evidence, **{part: replace(holder, **gone)})
    if part == "kernel":
        return replace(evidence, kernels=tuple(replace(each, **gone) for each in evidence.kernels))
    kernels = tuple(
        replace(kernel, metrics={**kernel.metrics, name: None}) for kernel in evidence.kernels
    )
    return replace(evidence, kernels=kernels)


def _all_findings(diagnosis: Diagnosis) -> list[Finding]:
    return [*diagnosis.findings, *diagnosis.remarks, *diagnosis.energy_notes]
