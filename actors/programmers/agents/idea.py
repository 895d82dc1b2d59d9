"""One idea of an expansion: what its roles ask, place by place, and what that cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kopt.actors.programmers.agents.tally import AgentTally
from kopt.agent_call import Agent, AgentCall, CallDesk, CallPlace, Say
from kopt.ports import Completion, Message, Usage, WriteRequest
from kopt.prompts.builder import reference_is_cut


class Idea:
    """Asks for one slot of an expansion. Each role's turns count from 0."""

    def __init__(
        self, request: WriteRequest, *, slot: int, desk: CallDesk, say: Say, tally: AgentTally
    ) -> None:
        """Take the slot; nothing is asked.

        Args:
            request: of the expansion.
            slot: of it, from 0.
            desk: of the run.
            say: of whoever answers.
            tally: of the sitting.
        """
        self.request = request
        self.slot = slot
        self.usage = Usage()
        """Of all calls, those that the journal had included: they are paid for once, and counted
        with the answer of their expansion."""
        self.num_heard = 0
        """Calls that were answered."""
        self._desk = desk
        self._say = say
        self._tally = tally
        self._turns: Counter[Agent] = Counter()

    @property
    def number(self) -> int:
        """How many ideas were asked at this node before this one."""
        return self.request.expansion.first_child + self.slot

    async def ask(self, agent: Agent, messages: Sequence[Message]) -> Completion:
        """Return what was said to a role's conversation.

        Raises:
            Whatever whoever answers raises, and StoreError.
        """
        request, turn = self.request, self._turns[agent]
        self._turns[agent] += 1
        call = AgentCall(
            place=CallPlace(request.expansion.ordinal, agent, self.slot, turn),
            problem=request.problem,
            search=request.search,
            seed=request.seed,
            draw=request.expansion.seed,
            messages=tuple(messages),
        )
        reply = await self._desk.ask(call, say=self._say)
        self._tally.add(agent, reply, reference_is_cut=reference_is_cut(messages))
        said = reply.completion
        self.num_heard += 1
        self.usage = Usage(
            tokens_in=self.usage.tokens_in + said.usage.tokens_in,
            tokens_out=self.usage.tokens_out + said.usage.tokens_out,
            cost_usd=self.usage.cost_usd + said.usage.cost_usd,
        )
        return said
