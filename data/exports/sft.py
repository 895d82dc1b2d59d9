"""SFT: conversations that end in a candidate worth imitating, as a `messages` column.

A row is one turn (`single`), or the turns of a lineage one after the other (`lineage`): each with
the prompt as it was sent, the system message once. Earlier turns of a lineage may be wrong: that is
what the later ones mend; `turn_verdicts` says what became of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kopt.data.corpus.columns import MESSAGE
from kopt.data.corpus.run_texts import Chat
from kopt.data.corpus.trial_row import TrialRow
from kopt.data.exports.facts import FACTS, JUDGED, facts_of, judged_of
from kopt.data.exports.searched import Searched
from kopt.data.exports.turns import Turn

SFT_SCHEMA = pa.schema(
    [
        pa.field("messages", pa.list_(MESSAGE)),
        pa.field("turns", pa.int64()),
        pa.field("turn_verdicts", pa.list_(pa.string())),
        pa.field("tool_calls", pa.string()),
        *FACTS,
        *JUDGED,
    ]
)
"""`tool_calls` is JSON: what the last turn's author called on the way; `[]` as a rule."""


def sft_rows(searched: Searched) -> Iterator[dict[str, Any]]:
    """Give the conversations of a search."""
    choice = searched.choice
    good = []
    for row in searched.chosen():
        why = choice.why_not_good(row.judged)
        if why:
            searched.leave_out(why)
        else:
            good.append(row)
    # The best first: of near-duplicates it is the one that stays.
    good.sort(key=_low_end, reverse=True)
    for row in searched.read_ahead(good, with_sources=choice.near_duplicate is not None):
        if not searched.is_new(row):
            searched.leave_out("near-duplicate")
            continue
        turn = searched.turn(row)
        if turn is None:
            continue
        if choice.turns in ("single", "both"):
            yield _conversation(searched, row, [turn], [row])
        if choice.turns in ("lineage", "both") and row.lineage:
            rows = searched.turns.lineage(row)
            turns = [] if rows is None else [searched.turns.turn(each) for each in rows]
            if rows is None or any(each is None for each in turns):
                searched.leave_out("lineage with a gap")
            else:
                yield _conversation(searched, row, [each for each in turns if each], rows)


def _low_end(row: TrialRow) -> float:
    interval = None if row.judged is None else row.judged.speedup_ci
    return 0.0 if interval is None else interval[0]


def _conversation(
    searched: Searched, row: TrialRow, turns: list[Turn], rows: list[TrialRow]
) -> dict[str, Any]:
    verdicts = [None if each.judged is None else each.judged.kind for each in rows]
    calls = "[]" if row.answer is None else row.answer["tool_calls"] or "[]"
    return {
        "messages": joined(turns),
        "turns": len(turns),
        "turn_verdicts": verdicts,
        "tool_calls": searched.texts.redactor.text(calls),
        **facts_of(searched.search, row, texts=searched.texts, origin=turns[-1].origin),
        **judged_of(row),
    }


def joined(turns: list[Turn]) -> Chat:
    """Return turns as one conversation: a system message that was said before is not repeated."""
    messages: Chat = []
    for turn in turns:
        said = [each for each in messages if each["role"] == "system"]
        messages += [each for each in turn.prompt if each["role"] != "system" or each not in said]
        messages.append({"role": "assistant", "content": turn.completion})
    return messages
