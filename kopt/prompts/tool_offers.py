"""Micro-profiling tools as functions that a model may call (the reactive arm, KernelPro App. F).

A call reads the parent's evidence with one tool and answers with what it found, in the words in
which the proactive arm tells findings. A tool that has nothing to say, or lacks figures, says that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kopt.evidence import Evidence
from kopt.ports import WriteRequest
from kopt.prompts.excerpts import middle_out
from kopt.prompts.finding_text import findings_text
from kopt.tools.diagnosis import diagnose
from kopt.tools.registry import ToolRegistry
from kopt.tools.tool import ProfilingTool

MAX_RESULT = 4_000
"""Characters of one answer."""
MAX_NAME = 64
"""Characters of a function's name that every endpoint takes."""
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_NO_ARGUMENTS: dict[str, Any] = {
    "type": "object",
    "properties": {},
    "required": [],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOffers:
    """The tools that are offered over one profile."""

    evidence: Evidence
    tools: Mapping[str, ProfilingTool]
    """Name of the function to its tool, in order."""

    def functions(self) -> list[dict[str, Any]]:
        """Return the offers in the form of a chat completion's `tools`."""
        return [
            {
                "type": "function",
                "function": {
                    "name": name,
                    "description": f"{tool.title}. Reads the profile of the version ({tool.source})"
                    " and says whether it is so, why, and what to do about it.",
                    "strict": True,
                    "parameters": _NO_ARGUMENTS,
                },
            }
            for name, tool in self.tools.items()
        ]

    def call(self, name: str) -> str:
        """Return what the tool of a function's name says, in words; it raises nothing."""
        tool = self.tools.get(name)
        if tool is None:
            return f"There is no tool {name[:MAX_NAME]!r}; there are: {', '.join(self.tools)}."
        diagnosis = diagnose(self.evidence, tools=[tool], max_findings=None)
        found = (*diagnosis.findings, *diagnosis.remarks, *diagnosis.energy_notes)
        if found:
            text = findings_text(found, max_characters=MAX_RESULT)
            return middle_out(text, max_characters=MAX_RESULT)
        for silent in diagnosis.silent:
            if silent.fault:
                return f"The tool failed: {silent.fault}."
            return f"Nothing can be said: the profile lacks {', '.join(silent.missing)}."
        if diagnosis.not_asked:
            classes = " and ".join(diagnosis.classes)
            return f"Nothing: the tool is for other bottlenecks than this one's ({classes})."
        return "Nothing: this profile does not show it."


def offers_of(request: WriteRequest) -> ToolOffers | None:
    """Return the tools that a request's author may call; None where there is nothing to call."""
    telling, parent = request.telling, request.parent
    if telling.orchestration != "reactive" or telling.feedback != "tools":
        return None
    if parent is None or parent.evidence is None:
        return None
    tools = [tool for tool in ToolRegistry.tools() if telling.energy or tool.partition != "energy"]
    named: dict[str, ProfilingTool] = {}
    for tool in tools:
        named.setdefault(_NOT_IN_A_NAME.sub("_", tool.name)[:MAX_NAME], tool)
    return ToolOffers(evidence=parent.evidence, tools=named)
