"""The tables of each format: their columns, and how a search becomes their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args

import pyarrow as pa

from kopt.data.corpus.columns import CORPUS_SCHEMA
from kopt.data.corpus.full_row import full_rows
from kopt.data.exports.dpo import DPO_SCHEMA, dpo_rows
from kopt.data.exports.rl import EPISODES_SCHEMA, PROMPTS_SCHEMA, episode_rows, prompt_rows
from kopt.data.exports.searched import Searched
from kopt.data.exports.sft import SFT_SCHEMA, sft_rows

Format = Literal["corpus", "sft", "dpo", "rl", "guidelines"]
FORMATS: tuple[Format, ...] = get_args(Format)
SEARCH_BY_SEARCH: frozenset[Format] = frozenset(("corpus", "dpo"))
"""Formats whose rows of a search do not depend on the searches before it."""
_LONG = (
    *("source", "problem_source", "completion", "reasoning", "messages", "tool_calls"),
    *("eval", "evidence", "findings", "analysis", "prompt", "chosen", "rejected", "steps"),
    *("prompt_token_ids", "token_ids", "logprobs", "samples_us", "baseline_samples_us"),
)
"""Columns that may be longer than a line."""

Rows = Callable[[Searched], Iterator[dict[str, Any]]]


def tables_of(format: Format) -> dict[str, tuple[pa.Schema, Rows]]:  # noqa: A002
    """Return the tables of a format by name; the rows of the first are those that a card counts.

    Args:
        format: what for.
    """
    match format:
        case "corpus":
            return {"data": (CORPUS_SCHEMA, _full_rows)}
        case "sft":
            return {"data": (SFT_SCHEMA, sft_rows)}
        case "dpo":
            return {"data": (DPO_SCHEMA, dpo_rows)}
        case "rl":
            known: set[str] = set()
            return {
                "episodes": (EPISODES_SCHEMA, episode_rows),
                "prompts": (PROMPTS_SCHEMA, lambda each: prompt_rows(each, known=known)),
            }
        case "guidelines":
            return {}


def characters(row: Mapping[str, Any]) -> int:
    """Return the characters of a row's long columns, about: they bound a row group's memory."""
    return sum(_length(row[name]) for name in _LONG if name in row)


def _full_rows(searched: Searched) -> Iterator[dict[str, Any]]:
    yield from full_rows(searched.search, searched.rows, texts=searched.texts)


def _length(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if not isinstance(value, list) or not value:
        return 0
    if isinstance(value[0], dict):
        return sum(_length(field) for each in value for field in each.values())
    return 8 * len(value)
