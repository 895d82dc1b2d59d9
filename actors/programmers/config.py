"""The programmers' section of the configuration: one class each, told apart by `kind`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator

from kopt.section import Section


class ProgrammerSection(Section):
    """What every programmer's section answers."""

    @property
    def expansions_at_once(self) -> int:
        """Expansions that may be being written beyond those that keep the lanes busy.

        0 where writing takes no longer than judging.
        """
        return 0


class RewriterConfig(ProgrammerSection):
    """The programmer that needs no model."""

    kind: Literal["rewriter"] = "rewriter"


class PriceConfig(Section):
    """What a model costs, in dollars per million tokens; 0 where nobody is paid."""

    prompt_usd_per_mtok: float = Field(default=0.0, ge=0)
    """Tokens read."""
    cached_prompt_usd_per_mtok: float | None = Field(default=None, ge=0)
    """Tokens read that the server had cached; null: as any other."""
    completion_usd_per_mtok: float = Field(default=0.0, ge=0)
    """Tokens written, those of reasoning included."""


class OpenAIConfig(ProgrammerSection):
    """Any OpenAI-compatible endpoint."""

    kind: Literal["openai"] = "openai"
    model: str = Field(min_length=1)
    """As the endpoint names it."""
    base_url: str | None = None
    """Of the endpoint (`http://host:8000/v1`); null: OPENAI_BASE_URL, or else the vendor's own."""
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key; the key itself is never configured."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Sent with each request. `${NAME}` stands for an environment variable."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Null leaves it to the server: some models take none."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Null leaves it to the server."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens written at most by one completion; null leaves it to the server."""
    token_limit_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the endpoint calls that limit."""
    seeded: bool = True
    """Send each expansion's sampling seed; off for endpoints that refuse it."""
    completions: Literal["together", "apart"] = "together"
    """N completions in one request (`n=N`, the prompt paid once), or one request each. Where a
    server gives fewer than N together, the missing ones are asked for apart."""
    stream: bool = False
    """Read the answer as it is written: an endless one is cut at `max_answer_bytes`."""
    max_answer_bytes: int = Field(default=400_000, ge=1_000)
    """A longer answer is cut off and counted as faulty."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request, as the endpoint takes them."""
    deadline_s: float = Field(default=900.0, gt=0)
    """For one expansion's answer, retries included."""
    max_retries: int = Field(default=6, ge=0)
    """Of one request, on 408, 409, 429, 5xx and lost connections."""
    backoff_s: float = Field(default=1.0, gt=0)
    """Upper bound of the first pause before a retry; it doubles with each, with full jitter. A
    server's Retry-After is kept to."""
    max_concurrency: int = Field(default=64, ge=1)
    """Requests under way at once."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Requests begun in any minute at most; null for no limit."""
    price: PriceConfig = PriceConfig()

    @property
    def expansions_at_once(self) -> int:
        """As many as requests (each expansion is at least one)."""
        return self.max_concurrency

    @field_validator("api_key_env")
    @classmethod
    def _a_name(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
            raise ValueError("expected the name of an environment variable, not a key")
        return value


class RecordedConfig(ProgrammerSection):
    """The answers of an earlier run, again: keyed by problem, arm, seed, expansion ordinal."""

    kind: Literal["recorded"] = "recorded"
    run: str = Field(min_length=1)
    """Folder of the run."""
    arm: str | None = None
    """Which of its arms; null: the run's only one, or the one named as this run's."""
    verdicts: bool = False
    """Take the verdicts of its candidates from the run as well, so that a GPU's run replays
    anywhere; a candidate without one is judged here."""


class MailboxConfig(ProgrammerSection):
    """A person or an outside agent answers through files."""

    kind: Literal["mailbox"] = "mailbox"
    folder: str | None = None
    """Where prompts and answers lie; null: `mailbox/` in the run folder."""
    poll_s: float = Field(default=0.5, gt=0)
    """Seconds between two looks at the answers."""
    settle_s: float = Field(default=2.0, ge=0)
    """An answer that cannot be read is refused only once it has not changed for so long."""
    deadline_s: float | None = Field(default=None, gt=0)
    """Seconds after which an unanswered prompt is given up; null waits."""
    open_prompts: int = Field(default=8, ge=1)
    """Prompts laid out at once, about."""

    @property
    def expansions_at_once(self) -> int:
        """As many as prompts."""
        return self.open_prompts


class PluginProgrammerConfig(ProgrammerSection):
    """A programmer of another package, found by the entry-point group `kopt.programmers`."""

    kind: str = Field(pattern=r"^[^/]+/[^/]+$")
    """`package/name`, the name of the entry point."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Its own settings; its factory checks them."""


def _kind(section: object) -> str | None:
    """Return the kind of a section; `plugin` for any with a package's prefix."""
    kind = section.get("kind") if isinstance(section, dict) else getattr(section, "kind", None)
    return "plugin" if isinstance(kind, str) and "/" in kind else kind


ProgrammerConfig = Annotated[
    Annotated[RewriterConfig, Tag("rewriter")]
    | Annotated[OpenAIConfig, Tag("openai")]
    | Annotated[RecordedConfig, Tag("recorded")]
    | Annotated[MailboxConfig, Tag("mailbox")]
    | Annotated[PluginProgrammerConfig, Tag("plugin")],
    Discriminator(_kind),
]
"""Any programmer's section."""
