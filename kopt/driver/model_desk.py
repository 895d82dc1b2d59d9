"""The desk of calls about compiled models as a whole, which come before any search of a run.

Invariant, as of kopt.driver.agent_desk: each call is journalled before it is used, and asked for at
most once over all sittings of a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kopt.agent_call import AgentCall, AgentReply, CallPlace, Say
from kopt.driver.agent_desk import event_of, place_of, reply_of
from kopt.events import AgentCalled
from kopt.ports import EventSink, Usage


class ModelDesk:
    """Where calls about whole models go through."""

    def __init__(self, known: Iterable[AgentCalled], *, sink: EventSink) -> None:
        """Take what the journal has of such calls."""
        self._known: dict[tuple[str, CallPlace], AgentCalled] = {
            (event.problem, place_of(event)): event for event in known
        }
        self._sink = sink

    def known(self, call: AgentCall) -> AgentReply | None:
        """Return what the journal has of a call; None where it was not made.

        Raises:
            StoreError: a text is missing.
        """
        event = self._known.get((call.problem.problem_id, call.place))
        return None if event is None else reply_of(event, sink=self._sink)

    async def ask(self, call: AgentCall, *, say: Say) -> AgentReply:
        """Return what was said, once it is journalled; what the journal has is not asked again.

        Raises:
            StoreError: the journal cannot be written.
            Whatever `say` raises.
        """
        known = self.known(call)
        if known is not None:
            return known
        reply = await say(call)
        self._keep(call, reply)
        return reply

    def share(self, call: AgentCall, reply: AgentReply) -> None:
        """Journal what another job of the same fleet was told: it was paid for there.

        Raises:
            StoreError: the journal cannot be written.
        """
        if self.known(call) is None:
            free = replace(reply.completion, usage=Usage())
            self._keep(call, replace(reply, completion=free))

    def _keep(self, call: AgentCall, reply: AgentReply) -> None:
        event = event_of(call, reply, sink=self._sink)
        self._sink.append("", event)
        self._known[call.problem.problem_id, call.place] = event
