"""RL: episodes with a reward for each step, and prompts alone for on-policy training.

An episode is a lineage from ROOT to a leaf of the tree, failures included: each step has the prompt
as it was sent, the answer, what the tree was told, and token ids and log-probabilities where they
were kept. Lineages share their first steps; `is_new` marks a step that no earlier episode had.

A prompt row has the columns that TRL (`prompt`) and verl (`data_source`, `prompt`, `ability`,
`reward_model`, `extra_info`) read; `problem` and `problem_source` are what a reward function needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kopt.data.corpus.columns import MESSAGE
from kopt.data.corpus.trial_row import TrialRow
from kopt.data.exports.facts import FACTS, facts_of
from kopt.data.exports.searched import Searched
from kopt.data.exports.turns import Turn
from kopt.identity import text_id

STEP = pa.struct(
    [
        pa.field("prompt", pa.list_(MESSAGE)),
        pa.field("completion", pa.string()),
        pa.field("reward", pa.float64()),
        pa.field("verdict", pa.string()),
        pa.field("speedup", pa.float64()),
        pa.field("node", pa.int64()),
        pa.field("is_new", pa.bool_()),
        pa.field("prompt_token_ids", pa.list_(pa.int32())),
        pa.field("token_ids", pa.list_(pa.int32())),
        pa.field("logprobs", pa.list_(pa.float32())),
    ]
)
EPISODES_SCHEMA = pa.schema(
    [
        pa.field("steps", pa.list_(STEP)),
        pa.field("num_steps", pa.int64()),
        pa.field("final_reward", pa.float64()),
        pa.field("best_reward", pa.float64()),
        *FACTS,
    ]
)
PROMPTS_SCHEMA = pa.schema(
    [
        pa.field("prompt", pa.list_(MESSAGE)),
        pa.field("data_source", pa.string()),
        pa.field("ability", pa.string()),
        pa.field(
            "reward_model",
            pa.struct([pa.field("style", pa.string()), pa.field("ground_truth", pa.string())]),
        ),
        pa.field(
            "extra_info",
            pa.struct(
                [
                    pa.field("index", pa.int64()),
                    pa.field("problem_name", pa.string()),
                    pa.field("mode", pa.string()),
                ]
            ),
        ),
        pa.field("problem_source", pa.string()),
        pa.field("problem_dtype", pa.string()),
        *FACTS,
    ]
)


def episode_rows(searched: Searched) -> Iterator[dict[str, Any]]:
    """Give the episodes of a search."""
    rows = [row for row in searched.read_ahead([*searched.chosen()]) if row.node is not None]
    inner = {node for row in searched.rows for node in row.lineage}
    known: set[int | None] = set()
    for leaf in rows:
        if leaf.node in inner:
            continue
        lineage = searched.turns.lineage(leaf)
        turns = [] if lineage is None else [searched.turns.turn(each) for each in lineage]
        if lineage is None or any(turn is None for turn in turns):
            searched.leave_out("lineage with a gap")
            continue
        last = turns[-1]
        if last is None or (last.origin == "rebuilt" and not searched.choice.with_rebuilt):
            searched.leave_out("prompt was not sent")
            continue
        steps = [
            _step(searched, row, turn, is_new=row.node not in known)
            for row, turn in zip(lineage, turns, strict=True)
            if turn is not None
        ]
        known |= {row.node for row in lineage}
        rewards = [step["reward"] for step in steps]
        yield {
            "steps": steps,
            "num_steps": len(steps),
            "final_reward": rewards[-1],
            "best_reward": max(rewards),
            **facts_of(searched.search, leaf, texts=searched.texts, origin=last.origin),
        }
    searched.leave_out("not told to the tree", times=sum(row.node is None for row in searched.rows))


def prompt_rows(searched: Searched, *, known: set[str]) -> Iterator[dict[str, Any]]:
    """Give the prompts of a search that were not given before.

    Args:
        searched: the search.
        known: digests of prompts; added to.
    """
    problem = searched.texts.problem(searched.problem)
    asked: set[int] = set()
    for row in searched.read_ahead(searched.rows):
        ordinal = row.expansion["expansion"]
        why = searched.choice.why_no_problem(problem, problem_id=searched.problem)
        if why or problem is None or ordinal in asked:
            continue
        asked.add(ordinal)
        turn = searched.turns.turn(row)
        if turn is None or (turn.origin == "rebuilt" and not searched.choice.with_rebuilt):
            continue
        digest = text_id(f"{searched.problem} {turn.prompt}")
        if digest in known:
            continue
        known.add(digest)
        started = searched.search.started
        yield {
            "prompt": turn.prompt,
            "data_source": f"kopt/{started['problem_name'].partition('/')[0]}",
            "ability": "kernel",
            "reward_model": {"style": "rule", "ground_truth": searched.problem},
            "extra_info": {
                "index": len(known) - 1,
                "problem_name": started["problem_name"],
                "mode": row.expansion["mode"],
            },
            "problem_source": searched.texts.redactor.text(problem.source),
            "problem_dtype": problem.dtype,
            **facts_of(searched.search, row, texts=searched.texts, origin=turn.origin),
        }


def _step(searched: Searched, row: TrialRow, turn: Turn, *, is_new: bool) -> dict[str, Any]:
    trace = searched.texts.tokens(None if row.answer is None else row.answer.get("trace"))
    return {
        "prompt": turn.prompt,
        "completion": turn.completion,
        "reward": row.reward,
        "verdict": None if row.judged is None else row.judged.kind,
        "speedup": None if row.judged is None else row.judged.speedup,
        "node": row.node,
        "is_new": is_new,
        "prompt_token_ids": trace.get("prompt_token_ids") or None,
        "token_ids": trace.get("token_ids") or None,
        "logprobs": trace.get("logprobs") or None,
    }
