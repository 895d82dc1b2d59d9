"""What a pool has done, in a few lines for the user."""

from __future__ import annotations

from kopt.actors.programmers.vllm.figures import Figures
from kopt.actors.programmers.vllm.pool import Pool


def lines_of(pool: Pool) -> list[str]:
    """Return lines on the servers and on what their caches were worth."""
    came_up = [seat for seat in pool.seats if seat.first_up is not None]
    if not came_up:
        return ["no server came up"]
    first_s = [seat.first_up.first_token_s for seat in came_up if seat.first_up is not None]
    restarts = sum(seat.starts - 1 for seat in came_up)
    spread = (
        f"{min(first_s):.1f} s" if len(first_s) == 1 else f"{min(first_s):.1f}-{max(first_s):.1f} s"
    )
    return [
        f"{len(came_up)} of {len(pool.seats)} servers up, first token after {spread}, "
        f"{restarts} restarts, {sum(seat.sent for seat in pool.seats)} requests sent",
        cache_line(pool.figures),
    ]


def cache_line(figures: Figures) -> str:
    """Return the line on prefix cache, KV cache and queue."""
    rate = figures.hit_rate
    cached = (
        "no prompt was looked up in the prefix cache"
        if rate is None
        else f"prefix cache hit rate {rate:.1%} ({figures.prefix_hits:,} of "
        f"{figures.prefix_queries:,} prompt tokens)"
    )
    parts = [cached, f"{figures.generation_tokens:,} tokens written", _load(figures)]
    if figures.peak_kv_cache:
        parts.append(f"at most {figures.peak_kv_cache:.0%} of its KV cache used")
    parts.append(f"{figures.preemptions} preemptions")
    return "; ".join(filter(None, parts))


def _load(figures: Figures) -> str:
    """Return the most that was seen at once; empty where no look fell on a request under way."""
    most = {"under way": figures.peak_running, "waiting": figures.peak_waiting}
    seen = [f"{number} {what}" for what, number in most.items() if number]
    return f"at most {' and '.join(seen)} in a server, as seen every few seconds" if seen else ""
