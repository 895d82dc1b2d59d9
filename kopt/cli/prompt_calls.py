"""`kopt prompt` where roles wrote: every call of an expansion, as it was sent and answered."""

from __future__ import annotations

import json
from typing import Any

from kopt.data.fold import ExpansionState
from kopt.data.rundir import RunDir
from kopt.errors import StoreError
from kopt.events import AgentCalled
from kopt.ports import Message
from kopt.prompts.transcript import transcript


def calls_text(expansion: ExpansionState, *, run: RunDir) -> str:
    """Return the last conversation of each role and idea, with its answer, for a person.

    Args:
        expansion: that roles wrote.
        run: whose artefacts hold the words.

    Raises:
        StoreError: a text is missing or damaged.
    """
    last = {(call.slot, call.agent): call for call in expansion.calls}
    parts = []
    for (slot, agent), call in sorted(last.items()):
        asked = sum(each.slot == slot and each.agent == agent for each in expansion.calls)
        head = f"##### idea {slot}, {agent}: {asked} call{'' if asked == 1 else 's'} #####\n"
        said = _said(call, run) or f"(nothing: {call.fault})"
        parts.append(f"{head}\n{transcript([*_messages(call, run), Message('answer', said)])}")
    return "\n".join(parts)


def calls_json(expansion: ExpansionState, *, run: RunDir) -> list[dict[str, Any]]:
    """Return every call of an expansion as plain values, in the order made.

    Raises:
        StoreError: a text is missing or damaged.
    """
    return [
        {
            "agent": call.agent,
            "slot": call.slot,
            "turn": call.turn,
            "messages": [message._asdict() for message in _messages(call, run)],
            "text": _said(call, run),
            "fault": call.fault,
            "sampling": call.sampling,
            "tokens_in": call.tokens_in,
            "tokens_out": call.tokens_out,
            "cost_usd": call.cost_usd,
        }
        for call in expansion.calls
    ]


def _said(call: AgentCalled, run: RunDir) -> str:
    return run.artefacts.get(call.text) if call.text else ""


def _messages(call: AgentCalled, run: RunDir) -> list[Message]:
    try:
        kept = json.loads(run.artefacts.get(call.messages))
        return [Message(str(role), str(words)) for role, words in kept]
    except (TypeError, ValueError) as error:
        raise StoreError("prompt artefact", f"not a list of messages: {error}") from error
