"""What a server says of itself at `/metrics`: queue, KV cache, prefix cache, tokens. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

COUNTERS = {
    "vllm:prefix_cache_queries": "prefix_queries",
    "vllm:prefix_cache_hits": "prefix_hits",
    "vllm:prompt_tokens": "prompt_tokens",
    "vllm:generation_tokens": "generation_tokens",
    "vllm:num_preemptions": "preemptions",
}
"""Counters that only grow, by the families' names, which leave `_total` out."""
GAUGES = {
    "vllm:num_requests_running": "peak_running",
    "vllm:num_requests_waiting": "peak_waiting",
    "vllm:kv_cache_usage_perc": "peak_kv_cache",
    "vllm:gpu_cache_usage_perc": "peak_kv_cache",  # its name before 0.10
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of one server, or of several together."""

    prefix_queries: int = 0
    """Tokens of prompts that were looked up in the prefix cache."""
    prefix_hits: int = 0
    """Of them, those that were there."""
    prompt_tokens: int = 0
    generation_tokens: int = 0
    preemptions: int = 0
    """Requests that lost their KV cache to others and were read again."""
    peak_running: int = 0
    """Most requests seen under way at once in one server; of looks every few seconds."""
    peak_waiting: int = 0
    """Most seen waiting in one server's queue."""
    peak_kv_cache: float = 0.0
    """Greatest share of one server's KV cache seen in use, in [0, 1]."""

    @property
    def hit_rate(self) -> float | None:
        """Share of the prompts' tokens that the prefix cache had; None where none was asked."""
        return self.prefix_hits / self.prefix_queries if self.prefix_queries else None

    def plus(self, other: Figures) -> Figures:
        """Return both together: counts added, peaks the greater."""
        mine, theirs = asdict(self), asdict(other)
        return Figures(
            **{
                name: max(value, theirs[name]) if name.startswith("peak_") else value + theirs[name]
                for name, value in mine.items()
            }
        )

    def after(self, earlier: Figures) -> Figures:
        """Return these, a later look at the same server, with the peaks of an earlier one."""
        return Figures(**{**asdict(self), **_peaks(self.plus(earlier))})

    def to_json(self) -> dict[str, Any]:
        """Return plain values, the hit rate among them."""
        return {**asdict(self), "prefix_hit_rate": self.hit_rate}


def read_figures(text: str) -> Figures:
    """Return the figures of a `/metrics` page; what it does not hold is 0.

    Raises:
        ValueError: it is no such page.
    """
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        name = COUNTERS.get(family.name) or GAUGES.get(family.name)
        if name is None:
            continue
        for sample in family.samples:  # one an engine
            if sample.name in (family.name, f"{family.name}_total"):
                found[name] = found.get(name, 0.0) + sample.value
    kv_cache = found.pop("peak_kv_cache", 0.0)
    return Figures(peak_kv_cache=kv_cache, **{name: int(value) for name, value in found.items()})


def _peaks(figures: Figures) -> Mapping[str, Any]:
    return {name: value for name, value in asdict(figures).items() if name.startswith("peak_")}
