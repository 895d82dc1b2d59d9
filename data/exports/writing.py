"""Searches written as rows of an export's tables, everything that there is of them counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from kopt.data.corpus.gathering import GatheredSearch
from kopt.data.corpus.near_duplicates import NearDuplicates
from kopt.data.corpus.run_texts import RunTexts
from kopt.data.corpus.trial_row import TrialRow, trial_rows
from kopt.data.exports.choice import Choice
from kopt.data.exports.data_card import Card
from kopt.data.exports.guidelines import search_tallies
from kopt.data.exports.searched import Searched
from kopt.data.exports.shard_writer import ShardWriter
from kopt.data.exports.tables import Format, characters, tables_of
from kopt.memory.tracker import Tally, summed


class Writing:
    """The tables of one export, or of a block of it, being written. A context manager.

    When it ends, `card.splits` has the rows of each table.
    """

    def __init__(
        self,
        folder: Path,
        *,
        format: Format,  # noqa: A002 - what users call it
        choice: Choice,
        card: Card,
        seen: NearDuplicates | None = None,
    ) -> None:
        """Take what is to be written.

        Args:
            folder: a folder for each table is made in it.
            format: what for.
            choice: what is taken.
            card: counts the rows, and what is left out.
            seen: sources taken so far; None: near-duplicates stay.
        """
        self.tallies: list[Tally] = []
        """Of the techniques, where the format is `guidelines`."""
        self._format = format
        self._choice = choice
        self._card = card
        self._seen = seen
        self._tables = tables_of(format)
        self._writers = {
            name: ShardWriter(folder / name, schema) for name, (schema, _) in self._tables.items()
        }
        self._stack = ExitStack()

    def __enter__(self) -> Writing:
        for writer in self._writers.values():
            self._stack.enter_context(writer)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        for name, writer in self._writers.items():
            self._card.splits[name] = Counter({str(split): n for split, n in writer.rows.items()})

    def take(self, searches: Iterable[GatheredSearch], *, texts: RunTexts) -> int:
        """Write searches of one run; return how many rows they have, chosen or not.

        Args:
            searches: in the order in which they are written.
            texts: of the run; its losses are told of what is not whole.

        Raises:
            StoreError: a file cannot be written.
        """
        total = 0
        for search in searches:
            rows = list(trial_rows(search, texts.losses))
            total += len(rows)
            for row in rows:
                self._count_tried(row, texts=texts)
            self._write(
                Searched(
                    search,
                    rows,
                    texts=texts,
                    choice=self._choice,
                    seen=self._seen,
                    left_out=self._card.left_out,
                )
            )
        return total

    def _write(self, searched: Searched) -> None:
        problem = searched.texts.problem(searched.problem)
        split = self._choice.splits.split("" if problem is None else problem.family)
        for number, (name, (_, rows)) in enumerate(self._tables.items()):
            writer = self._writers[name]
            for row in rows(searched):
                writer.add(split, row, characters=characters(row))
                if number == 0:
                    self._card.count(row, split=split)
        if self._format == "guidelines":
            self.tallies = list(summed([*self.tallies, *search_tallies(searched)]))

    def _count_tried(self, row: TrialRow, *, texts: RunTexts) -> None:
        if row.made is not None:
            self._card.tried["not judged" if row.judged is None else row.judged.kind] += 1
        elif row.answer is not None:
            fault = texts.redactor.text(row.answer["fault"] or "it was not used")
            self._card.faults[fault[:120]] += 1
