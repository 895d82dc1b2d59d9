"""What a reply cost: tokens as the server counts them, dollars at the configured prices."""

from __future__ import annotations

from kopt.actors.programmers.openai.reply import Tokens
from kopt.actors.programmers.openai_config import PriceConfig
from kopt.ports import Usage

MTOK = 1e6
"""Tokens that prices are for."""


def usage_of(tokens: Tokens | None, *, price: PriceConfig) -> Usage:
    """Return tokens and dollars; nothing where the server gave no tokens.

    cost = ((prompt - cached) * p + cached * c + completion * w) / 1e6
    """
    if tokens is None:
        return Usage()
    cached_usd = price.cached_prompt_usd_per_mtok
    if cached_usd is None:
        cached_usd = price.prompt_usd_per_mtok
    dollars = (
        (tokens.prompt - tokens.cached) * price.prompt_usd_per_mtok
        + tokens.cached * cached_usd
        + tokens.completion * price.completion_usd_per_mtok
    )
    return Usage(tokens_in=tokens.prompt, tokens_out=tokens.completion, cost_usd=dollars / MTOK)
