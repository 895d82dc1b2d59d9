"""The desk of a run's agents: each call is journalled before it is used, and asked for once.

Invariant: a place of a search (expansion, role, idea, turn) is asked for at most once over all
sittings of a run; whoever asks again is told what the journal has. What calls cost is counted with
the expansion's answer (kopt.driver.life), not here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from kopt.agent_call import AUTHORS, Agent, AgentCall, AgentReply, CallPlace, PastCall, Say
from kopt.driver.task import SearchTask
from kopt.events import AgentCalled
from kopt.identity import canonical_json
from kopt.ports import Completion, EventSink, Message, Usage


class AgentDesk:
    """The CallDesk of a fleet."""

    def __init__(self, tasks: Sequence[SearchTask], *, sink: EventSink) -> None:
        """Take the searches, which hold what their journals have of calls."""
        self._tasks = {task.spec.name: task for task in tasks}
        self._sink = sink

    async def ask(self, call: AgentCall, *, say: Say) -> AgentReply:
        """Return what was said, once it is journalled (the port)."""
        task = self._tasks[call.search]
        known = task.calls.get(call.place)
        if known is not None:
            return reply_of(known, sink=self._sink)
        reply = await say(call)
        event = event_of(call, reply, sink=self._sink)
        self._sink.append(call.search, event)
        task.calls[call.place] = event
        return reply

    def past(self, search: str, *, candidate: str) -> Sequence[PastCall]:
        """Return the authors' calls in the expansion that made a candidate (the port)."""
        task = self._tasks[search]
        made = task.made.get(candidate)
        if made is None:
            return ()
        return [
            PastCall(
                place=place,
                messages=_messages(self._sink.get_text(event.messages)),
                text=self._sink.get_text(event.text),
            )
            for place, event in sorted(task.calls.items())
            if place.expansion == made.expansion and place.agent in AUTHORS and event.text
        ]

    def strategies(self, search: str, *, expansion: int) -> Sequence[str]:
        """Return the strategies judged by the time an expansion was asked (the port)."""
        return self._tasks[search].recollection.strategies(expansion)


def event_of(call: AgentCall, reply: AgentReply, *, sink: EventSink) -> AgentCalled:
    """Return a call and its reply as the journal has them; their texts are kept.

    Raises:
        StoreError: a text cannot be written.
    """
    said, place = reply.completion, call.place
    return AgentCalled(
        expansion=place.expansion,
        agent=place.agent,
        slot=place.slot,
        turn=place.turn,
        messages=sink.put_text(canonical_json(call.messages)),
        sampling=dict(reply.sampling),
        text=sink.put_text(said.text) if said.text else None,
        finish=said.finish,
        fault=said.fault,
        reasoning=sink.put_text(said.reasoning) if said.reasoning else None,
        tokens_in=said.usage.tokens_in,
        tokens_out=said.usage.tokens_out,
        cost_usd=said.usage.cost_usd,
        problem="" if call.search else call.problem.problem_id,
    )


def reply_of(event: AgentCalled, *, sink: EventSink) -> AgentReply:
    """Return what the journal has of a call, as its reply.

    Raises:
        StoreError: a text is missing.
    """
    get = sink.get_text
    return AgentReply(
        completion=Completion(
            text=get(event.text) if event.text else "",
            finish=event.finish,
            fault=event.fault,
            reasoning=get(event.reasoning) if event.reasoning else "",
            usage=Usage(
                tokens_in=event.tokens_in,
                tokens_out=event.tokens_out,
                cost_usd=event.cost_usd,
            ),
        ),
        sampling=event.sampling,
        is_known=True,
    )


def place_of(event: AgentCalled) -> CallPlace:
    """Return where a journalled call stands in its search."""
    # The journal takes any name; only roles are written.
    return CallPlace(event.expansion, cast("Agent", event.agent), event.slot, event.turn)


def _messages(text: str) -> tuple[Message, ...]:
    return tuple(Message(role, words) for role, words in json.loads(text))
