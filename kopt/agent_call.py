"""Calls of agents: what one of several roles asks a model, and what it is told (pipeline=agents).

KernelOPT (§4.2, App. A) divides the work of one author among roles that share a model. Each call of
a role has its place in a search: the expansion, the idea that it is for, the turn of that role's
conversation. The place is the call's identity: a run that goes on, and a recording that is played,
find what was said by it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, get_args, runtime_checkable

from kopt.ports import Completion, Message
from kopt.problem import Problem

Agent = Literal["planner", "executor", "codegen", "fusion", "summarizer", "strategist"]
Author = Literal["executor", "codegen", "fusion"]
AGENTS: tuple[Agent, ...] = get_args(Agent)
AUTHORS: tuple[Author, ...] = get_args(Author)
"""Those whose answers are programs."""
Libraries = Literal["keep", "replace"]
"""What roles are told of library calls."""


class CallPlace(NamedTuple):
    """Where a call stands in its search; a strategist's stands before all searches of a model."""

    expansion: int
    """Of the search, from 0; 0 for a strategist's."""
    agent: Agent
    slot: int
    """Idea of the expansion, from 0; 0 for what concerns all of them."""
    turn: int
    """Of the role's conversation in this expansion and slot, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    """One prompt of one role."""

    place: CallPlace
    problem: Problem
    search: str
    """Name of the search, unique in the run; empty for what concerns a compiled model as a whole,
    which `problem` then is."""
    seed: int
    """Of the search, as a recording knows it."""
    draw: int
    """Seed of the expansion: where several models write, all calls of one are one model's."""
    messages: tuple[Message, ...]
    """The whole conversation so far, the last message the one to be answered."""

    @property
    def turn_name(self) -> str:
        """The place in words: `planner, idea 0, turn 1`."""
        return f"{self.place.agent}, idea {self.place.slot}, turn {self.place.turn}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReply:
    """What was said to a call."""

    completion: Completion
    """Its fault says why there are no words, where there are none."""
    sampling: Mapping[str, Any]
    """As sent."""
    is_known: bool = False
    """Whether the journal had it: nobody was asked, and nothing is paid again."""


class PastCall(NamedTuple):
    """A call that an earlier expansion of the search made."""

    place: CallPlace
    messages: tuple[Message, ...]
    text: str


@runtime_checkable
class Talker(Protocol):
    """Whoever answers in words: a model, a person, a recording."""

    async def say(self, call: AgentCall) -> AgentReply:
        """Answer one call. Many may be under way at once.

        Raises:
            ProgrammerUnavailable: nobody can answer now.
            ProgrammerRefused: nobody ever will, as things are set up.
            AnswerAwaited: the answer comes in a later sitting.
            WorkerLost: the process that answered is gone.
        """
        ...


Say = Callable[[AgentCall], Awaitable[AgentReply]]
"""A talker's method."""


class CallDesk(Protocol):
    """Where calls go through: nothing is used before it is kept, nothing is asked for twice."""

    async def ask(self, call: AgentCall, *, say: Say) -> AgentReply:
        """Return what was said, once it is journalled; what the journal has is not asked again.

        Args:
            call: the prompt and its place.
            say: asks, where it has to be asked.

        Raises:
            StoreError: the journal cannot be written.
            Whatever `say` raises.
        """
        ...

    def past(self, search: str, *, candidate: str) -> Sequence[PastCall]:
        """Return the authors' calls in the expansion that made a candidate, in order.

        Empty where none of them wrote it.

        Raises:
            StoreError: an artefact of them is missing.
        """
        ...

    def strategies(self, search: str, *, expansion: int) -> Sequence[str]:
        """Return the strategies of what had been judged when an expansion was asked, in order."""
        ...


@runtime_checkable
class Staffed(Protocol):
    """A programmer whose roles call through a desk; it has one before it is asked to write."""

    def sit_at(self, desk: CallDesk) -> None:
        """Take the desk of the run."""
        ...
