"""A scripted model that plays the roles of `pipeline=agents`: told apart by what their prompts say.

It asks for a part of the profile before it plans, and each of its programs is the reference under
another name, as `reference_author` writes it.
"""

from __future__ import annotations

import json

from kopt.prompts.templates import filled
from kopt.testing.openai_server.authors import reference_author
from kopt.testing.openai_server.behaviour import Asked

_PLANNER = filled("agent_planner", libraries="")[:60]
"""What the planner's prompts begin with."""


def roles_author(asked: Asked, choice: int) -> str:
    """Return what the role of a prompt answers."""
    messages = asked.body["messages"]
    system = messages[0]["content"]
    if system.startswith(filled("agent_summarizer")):
        lesson = f"lesson {asked.rng.randrange(10**6)}"
        item = {"outcome": "gain", "direction": "fusion", "insight": lesson}
        return json.dumps({"items": [item]})
    if system.startswith(filled("agent_strategist")):
        apart = {"pair": 1, "decision": "keep", "reason": "their shapes differ"}
        return json.dumps({"pairs": [apart]})
    if not system.startswith(_PLANNER):
        return reference_author(asked, choice)
    if len(messages) == 2:
        return json.dumps({"query": "profile", "aspect": "optimization_strategy"})
    plan = {
        "direction": f"approach {asked.rng.randrange(10**6)}",
        "bottleneck": "memory",
        "change": "keep what is computed in registers",
        "hints": ["mask every load"],
    }
    return f"Here it is.\n\n{json.dumps({'plan': plan})}"
