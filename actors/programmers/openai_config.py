"""The section of the programmer `openai`, and what it shares with others that ask a model."""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from kopt.actors.programmers.programmer_section import ProgrammerSection
from kopt.actors.programmers.tools_config import ToolsConfig
from kopt.section import SECRET_FAULT, Section

SECRET_HEADER = re.compile(r"authorization|key|token|secret|cookie|password", re.IGNORECASE)
"""Names of headers whose values are never written down."""
OWN_FIELDS = {
    "model": "model",
    "messages": "kind",
    "n": "completions",
    "seed": "seeded",
    "stream": "stream",
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "token_limit_key",
    "tools": "max_tool_calls",
    "tool_choice": "max_tool_calls",
    "logprobs": "logprobs",
    "return_token_ids": "return_token_ids",
    "response_format": "structured",
}
"""Fields of a request that have a key of their own here, and which."""


class PriceConfig(Section):
    """What a model costs, in dollars per million tokens; 0 where nobody is paid."""

    prompt_usd_per_mtok: float = Field(default=0.0, ge=0)
    """Tokens read."""
    cached_prompt_usd_per_mtok: float | None = Field(default=None, ge=0)
    """Tokens read that the server had cached; null: as any other."""
    completion_usd_per_mtok: float = Field(default=0.0, ge=0)
    """Tokens written, those of reasoning included."""


class ModelConfig(ProgrammerSection):
    """What is asked of a model, wherever it is served."""

    model: str | None = Field(default=None, min_length=1)
    """As its server names it; null: the only one that the endpoint lists."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Null leaves it to the server: some models take none."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Null leaves it to the server."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens written at most by one completion; null leaves it to the server."""
    token_limit_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the endpoint calls that limit."""
    seeded: bool = True
    """Send a sampling seed derived from each expansion's; off for endpoints that refuse it."""
    completions: Literal["together", "apart"] = "together"
    """N completions in one request (`n=N`, the prompt paid once), or one request each. Where a
    server gives fewer than N together, the missing ones are asked for apart."""
    structured: Literal["off", "json_schema", "tool"] = "off"
    """How an answer's form is held to: not at all (labels and a code block are asked for), by
    `response_format`, or as the arguments of one function. A server that refuses it is asked
    without; beside tools that the model may call it is not used."""
    truncation: Literal["two_phase", "off"] = "two_phase"
    """An answer that ended at `max_tokens` without a candidate is asked for again: with twice as
    many, and if that is cut as well, with a directive to be brief. Null has nothing to double."""
    seeds: Literal["rewriter"] | None = None
    """Whose ideas come first: a tree of `rewriter` begins with up to three that the rewriter writes
    without a model. `search.seeds` come before them."""
    prompt_tokens: int = Field(default=24_000, ge=4_000)
    """Tokens of a prompt at most, as estimated; sections give way. For models with a small
    context."""
    max_tool_calls: int = Field(default=8, ge=1)
    """Profiling tools that one completion may call, with findings.orchestration=reactive."""
    tools: ToolsConfig = ToolsConfig()
    logprobs: bool = False
    """Keep each token's log-probability in the journal (for learning from the run)."""
    return_token_ids: bool = False
    """Keep the token ids of prompts and completions in the journal; only vLLM's servers give them.
    """
    stream: bool = False
    """Read answers as they are written: of one that is cut off, what came before is journalled."""
    max_answer_bytes: int = Field(default=400_000, ge=1_000)
    """A longer completion is cut off and counted as faulty."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request, as the endpoint takes them."""
    deadline_s: float = Field(default=900.0, gt=0)
    """For one expansion's answer, retries and their pauses included. Waiting for a turn under
    `max_concurrency` and `requests_per_minute` does not count."""
    max_retries: int = Field(default=6, ge=0)
    """Of one request, on 408, 409, 429, 5xx and lost connections."""
    backoff_s: float = Field(default=1.0, gt=0)
    """Upper bound of the first pause before a retry; it doubles with each, with full jitter. A
    server's Retry-After is kept to."""
    max_concurrency: int = Field(default=64, ge=1)
    """Requests under way at once."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Requests begun in any minute at most, retries counted; null for no limit."""
    price: PriceConfig = PriceConfig()

    @property
    def expansions_at_once(self) -> int:
        """As many as requests (each expansion is at least one)."""
        return self.max_concurrency

    @field_validator("extra_body")
    @classmethod
    def _not_ours(cls, values: dict[str, Any]) -> dict[str, Any]:
        ours = sorted(OWN_FIELDS.keys() & values.keys())
        if ours:
            raise ValueError(f"{ours[0]} is set by programmer.{OWN_FIELDS[ours[0]]}")
        return values


class OpenAIConfig(ModelConfig):
    """Any OpenAI-compatible endpoint."""

    kind: Literal["openai"] = "openai"
    base_url: str | None = None
    """Of the endpoint (`http://host:8000/v1`); null: OPENAI_BASE_URL, or else the vendor's own."""
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key; the key itself is never configured. An
    endpoint on this host or in a private network needs none."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Sent with each request. `$NAME` in a value stands for an environment variable."""

    @field_validator("api_key_env")
    @classmethod
    def _a_name(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
            raise PydanticCustomError(
                SECRET_FAULT, "expected the name of an environment variable, not a key"
            )
        return value

    @field_validator("base_url")
    @classmethod
    def _an_endpoint(cls, value: str | None) -> str | None:
        return None if value is None else endpoint_url(value)

    @field_validator("headers")
    @classmethod
    def _no_secrets(cls, values: dict[str, str]) -> dict[str, str]:
        for name, value in values.items():
            if SECRET_HEADER.search(name) and "$" not in value:
                raise PydanticCustomError(
                    SECRET_FAULT,
                    "expected $NAME of an environment variable as the value of {header}; the run "
                    "folder keeps the configuration, and no secrets",
                    {"header": name},
                )
        return values


def endpoint_url(text: str) -> str:
    """Return the base URL of an endpoint, without a slash at its end.

    Raises:
        ValueError: it is no http(s) URL, or names one method instead of their root.
        PydanticCustomError: it holds a user's name and password.
    """
    url = text.strip().rstrip("/")
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise PydanticCustomError(
            SECRET_FAULT, "expected a URL without user and password; programmer.headers takes them"
        )
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.port != 0 else None
    except ValueError:  # a port that is no number, a broken IPv6 address
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise ValueError("expected a URL such as http://host:8000/v1")
    if parts.path.endswith("/completions"):
        raise ValueError("expected the part before /chat/completions")
    return url
