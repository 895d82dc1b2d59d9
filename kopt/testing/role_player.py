"""A Talker that plays every role of `pipeline=agents` at once, by the words that it is asked in.

It looks at a profile before it plans, plans another direction each time, and writes a module of its
own for each call; equal calls are answered alike, whenever they are asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from kopt.agent_call import AgentCall, AgentReply, CallPlace
from kopt.identity import text_id
from kopt.ports import Completion, Usage

Line = Callable[[AgentCall], str | Completion | None]
"""What is said to a call, its usage aside; None leaves it to the role."""

USAGE = Usage(tokens_in=100, tokens_out=10, cost_usd=0.5)
"""Of every call."""
MODULE = """strategy: {strategy}
language: torch

```python
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, *arguments):
        return torch.relu(arguments[0])


IDEA = "{idea}"
```
"""


def _nothing_else(call: AgentCall) -> str | None:
    del call
    return None


class RolePlayer:
    """Answers in the form that each role is asked for."""

    name = "scripted"

    def __init__(self, line: Line = _nothing_else) -> None:
        """Take what is said otherwise than a role would say it; what it raises, `say` raises."""
        self._line = line
        self.calls: list[AgentCall] = []
        """Every call, in order."""

    @property
    def places(self) -> list[CallPlace]:
        """Where it was asked, in order."""
        return [call.place for call in self.calls]

    async def say(self, call: AgentCall) -> AgentReply:
        """Answer one call (the Talker port)."""
        self.calls.append(call)
        said = self._line(call)
        if said is None:
            said = words_of(call)
        if isinstance(said, str):
            said = Completion(text=said)
        return AgentReply(completion=replace(said, usage=USAGE), sampling={"model": "role"})


def words_of(call: AgentCall) -> str:
    """Return what a role says at a place."""
    idea = text_id(f"{call.search} {list(call.place)}")[:8]
    match call.place.agent:
        case "planner" if call.place.turn == 0:
            return json.dumps({"query": "source"})
        case "planner":
            plan = {"direction": f"approach {idea}", "change": "hold it in registers"}
            return json.dumps({"plan": plan})
        case "strategist":
            apart = {"pair": 1, "decision": "keep", "reason": "their shapes differ"}
            return json.dumps({"pairs": [apart]})
        case "summarizer":
            item = {"outcome": "gain", "direction": "fusion", "insight": f"lesson {idea}"}
            return json.dumps({"items": [item]})
    return MODULE.format(strategy=f"{call.place.agent} {idea}", idea=idea)
