"""What goes over the wire, checked: requests are untrusted."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kopt.candidate import MAX_SOURCE_BYTES
from kopt.problem import Dtype

MAX_TEXT = 4 * MAX_SOURCE_BYTES
"""Characters of a completion; a longer one is refused."""
Status = Literal["done", "pending", "failed"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ChatMessage(BaseModel):
    """A message of a completion in the conversational form; further keys are let be."""

    role: str = "assistant"
    content: str | None = Field(default="", max_length=MAX_TEXT)


class Item(_Strict):
    """One completion to judge."""

    problem: str = ""
    """Name (`builtin/softmax`) or content id of a problem; empty where its source is given."""
    problem_source: str | None = Field(default=None, max_length=MAX_SOURCE_BYTES)
    """Its reference module, for problems that the service does not have."""
    problem_dtype: Dtype | None = None
    completion: str | list[ChatMessage]
    """A model's words, or its messages, of which those of the assistant count."""

    def text(self) -> str:
        """Return the completion's words."""
        if isinstance(self.completion, str):
            return self.completion
        words = [each.content or "" for each in self.completion if each.role == "assistant"]
        return "\n\n".join(words)


class Batch(_Strict):
    """Completions to judge."""

    items: list[Item]
    wait_s: float = Field(default=30.0, ge=0.0)
    """For verdicts that are not known yet; at most the service's `max_wait_s`."""


class Judgement(BaseModel):
    """What became of one completion."""

    key: str
    """Of problem and candidate: equal completions have equal ones. Empty for a failed problem."""
    status: Status
    """`pending`: ask again, with the same completion or the key. `failed`: there is no verdict, and
    `reason` says why; asked again, it is tried again."""
    reward: float | None = None
    """As the search counts it: ln(speedup) of a right candidate, -2 for a wrong one, -3 for one
    that does not run, or a completion without one; null unless done."""
    kind: str | None = None
    """Of the verdict; `no_candidate` for a completion without one."""
    speedup: float | None = None
    reason: str = ""
    candidate: str | None = None
    eval: dict[str, Any] | None = None
    """The object that `kopt eval --json` prints; null where there is no candidate."""
    findings: list[dict[str, Any]] | None = None
    """What tools found of a right candidate; null where the service does not profile."""


class Judgements(BaseModel):
    """The answer to a batch, in its order."""

    items: list[Judgement]
