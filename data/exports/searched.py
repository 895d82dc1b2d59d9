"""One search as an export sees it: its rows by choice, its turns, and what is left out, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kopt.data.corpus.gathering import GatheredSearch
from kopt.data.corpus.near_duplicates import NearDuplicates
from kopt.data.corpus.run_texts import RunTexts
from kopt.data.corpus.trial_row import TrialRow
from kopt.data.exports.choice import Choice
from kopt.data.exports.turns import Turn, Turns

AHEAD_ROWS = 256
"""Rows whose texts are read at once."""


class Searched:
    """What an export makes rows of."""

    def __init__(
        self,
        search: GatheredSearch,
        rows: list[TrialRow],
        *,
        texts: RunTexts,
        choice: Choice,
        seen: NearDuplicates | None,
        left_out: Counter[str],
    ) -> None:
        """Take a search.

        Args:
            search: as it was gathered.
            rows: all of it.
            texts: of its run.
            choice: what is taken.
            seen: sources of the export so far; None: near-duplicates stay.
            left_out: counts of the export, by reason.
        """
        self.search = search
        self.rows = rows
        self.texts = texts
        self.choice = choice
        self.turns = Turns(search, rows, texts=texts)
        self._seen = seen
        self._left_out = left_out

    @property
    def problem(self) -> str:
        """Id of its problem."""
        return str(self.search.started["problem"])

    def leave_out(self, why: str, *, times: int = 1) -> None:
        """Count what is not taken."""
        if times:
            self._left_out[why] += times

    def chosen(self) -> Iterator[TrialRow]:
        """Give the rows whose problem and terms are those asked for; the others are counted."""
        problem = self.texts.problem(self.problem)
        why = self.choice.why_no_problem(problem, problem_id=self.problem)
        if why:
            self.leave_out(why, times=len(self.rows))
            return
        for row in self.rows:
            why = self.choice.why_no_terms(row)
            if why:
                self.leave_out(why)
            else:
                yield row

    def turn(self, row: TrialRow) -> Turn | None:
        """Return a row's turn; one that is missing or not wanted is counted."""
        turn = self.turns.turn(row)
        if turn is None:
            self.leave_out("prompt or answer is missing")
        elif turn.origin == "rebuilt" and not self.choice.with_rebuilt:
            self.leave_out("prompt was not sent")
            return None
        return turn

    def read_ahead(
        self, rows: Sequence[TrialRow], *, with_sources: bool = False
    ) -> Iterator[TrialRow]:
        """Give rows, the texts of their turns read many at once.

        Args:
            rows: whose turns will be asked for.
            with_sources: `is_new` will be asked too.
        """
        for start in range(0, len(rows), AHEAD_ROWS):
            part = rows[start : start + AHEAD_ROWS]
            self.texts.read_ahead(
                sha256 for row in part for sha256 in _named(row, with_source=with_sources)
            )
            yield from part

    def is_new(self, row: TrialRow) -> bool:
        """Whether no source like a row's was taken before on its problem; it counts as taken."""
        if self._seen is None:
            return True
        source = self.turns.source(row)
        return source is None or not self._seen.seen(source, group=self.problem)


def _named(row: TrialRow, *, with_source: bool) -> Iterator[str | None]:
    """The artefacts that a row's turn is made of."""
    yield row.prompt
    if row.answer is not None:
        yield row.answer.get("text")
    if row.made is not None and (with_source or row.prompt is None):
        yield row.made["source"]
