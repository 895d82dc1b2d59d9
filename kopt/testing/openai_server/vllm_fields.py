"""What vLLM's servers give beyond OpenAI's: a page of figures, token ids, log-probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kopt.testing.openai_server.forms import CHARACTERS_OF_A_TOKEN

CACHED_SHARE = 2
"""One in so many tokens of a prompt was cached."""


def metrics_page(bodies: list[dict[str, Any]]) -> str:
    """Return a page in Prometheus' form of what was asked so far."""
    prompt = sum(
        len(str(message.get("content") or "")) // CHARACTERS_OF_A_TOKEN
        for body in bodies
        for message in body["messages"]
    )
    values = {
        "prefix_cache_queries_total": ("counter", prompt),
        "prefix_cache_hits_total": ("counter", prompt // CACHED_SHARE),
        "prompt_tokens_total": ("counter", prompt),
        "generation_tokens_total": ("counter", len(bodies)),
        "num_requests_running": ("gauge", 1),
        "num_requests_waiting": ("gauge", 0),
        "kv_cache_usage_perc": ("gauge", 0.25),
    }
    lines = []
    for name, (kind, value) in values.items():
        lines += [f"# TYPE vllm:{name} {kind}", f'vllm:{name}{{engine="0"}} {float(value)}']
    return "\n".join(lines) + "\n"


def token_fields(text: str, *, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a choice that a request asked for: a token for each four characters."""
    pieces = [
        text[start : start + CHARACTERS_OF_A_TOKEN]
        for start in range(0, len(text), CHARACTERS_OF_A_TOKEN)
    ]
    fields: dict[str, Any] = {}
    if body.get("logprobs"):
        fields["logprobs"] = {
            "content": [{"token": piece, "logprob": -0.5, "top_logprobs": []} for piece in pieces]
        }
    if body.get("return_token_ids"):
        fields["token_ids"] = list(range(len(pieces)))
    return fields
