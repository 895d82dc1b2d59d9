"""The body of a request, from the configuration and an expansion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kopt.actors.programmers.openai.words import clean
from kopt.actors.programmers.openai_config import ModelConfig
from kopt.identity import derived_seed
from kopt.ports import Message

SEED_BITS = 31
"""Some servers keep a seed in 32 bits with a sign, or read JSON numbers as doubles."""


def request_body(
    config: ModelConfig,
    *,
    model: str,
    messages: Sequence[Message],
    seed: int,
    index: int,
    num_choices: int,
) -> dict[str, Any]:
    """Return the fields of one request; what is not set is left out.

    Args:
        config: the programmer's section.
        model: by its name at the endpoint.
        messages: the prompt.
        seed: that the sampling seed is derived from.
        index: of the first completion asked for, so that each has a seed of its own.
        num_choices: asked for in this request.
    """
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": each.role, "content": clean(each.text)} for each in messages],
    }
    if num_choices > 1:
        body["n"] = num_choices
    if config.seeded:
        body["seed"] = derived_seed(seed, index) >> (63 - SEED_BITS)
    if config.temperature is not None:
        body["temperature"] = config.temperature
    if config.top_p is not None:
        body["top_p"] = config.top_p
    if config.max_tokens is not None:
        body[config.token_limit_key] = config.max_tokens
    if config.logprobs:
        body["logprobs"] = True
    if config.return_token_ids:
        body["return_token_ids"] = True
    if config.stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    return body | config.extra_body


def sampling_of(bodies: Sequence[dict[str, Any]], *, url: str) -> dict[str, Any]:
    """Return what a journal keeps of an expansion's requests: all but the prompt.

    The fields of the first request, the endpoint, and the seeds of all of them.
    """
    fields = {key: value for key, value in bodies[0].items() if key != "messages"}
    if len(bodies) > 1 and fields.pop("seed", None) is not None:
        fields["seeds"] = [body["seed"] for body in bodies]
    return {"endpoint": url, **fields}
