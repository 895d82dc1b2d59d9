"""An export, from run folders to a folder that is there whole or not at all.

Runs are read search by search; a search's texts are read when its rows are written. What is held is
the searches under way, one row group of each split, and what near-duplicates need.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kopt.data.atomic import TEMPORARY_SUFFIX, make_folder, store_error, write_bytes
from kopt.data.corpus.gathering import GatheredSearch
from kopt.data.corpus.near_duplicates import NearDuplicates
from kopt.data.corpus.run_texts import RunTexts
from kopt.data.corpus.views import VIEWS_FILE, views_sql
from kopt.data.exports import blocks
from kopt.data.exports.block_pool import BlockPool
from kopt.data.exports.blocks import Block, Job, Piece, join_blocks, rows_about
from kopt.data.exports.choice import Choice
from kopt.data.exports.data_card import Card, write_card
from kopt.data.exports.guidelines import guidelines_json, guidelines_text
from kopt.data.exports.tables import FORMATS, SEARCH_BY_SEARCH, Format, tables_of
from kopt.data.exports.writing import Writing
from kopt.data.rundir import RunDir
from kopt.data.strategies import StrategyFile
from kopt.errors import ConfigError
from kopt.identity import canonical_json
from kopt.memory.tracker import Tally

__all__ = ["FORMATS", "GUIDELINES_FILE", "TRACKER_FILE", "Format", "export"]

GUIDELINES_FILE = "guidelines.json"
TRACKER_FILE = "tracker.json"


def export(
    runs: Sequence[RunDir],
    out: Path,
    *,
    format: Format,  # noqa: A002 - what users call it
    choice: Choice,
    settings: dict[str, Any],
    words: Sequence[str] = (),
    processes: int = 1,
) -> Card:
    """Write an export and return its card.

    Equal runs, choice and settings give equal bytes, whatever the number of processes.

    Args:
        runs: in the order wanted.
        out: folder to make; may be there if it is empty.
        format: what for.
        choice: what is taken; a corpus takes everything.
        settings: what was asked for, for the card.
        words: further names that must not remain in any text.
        processes: that may write at once, >= 1, where the format's searches do not depend on each
            other and there are enough of them; they are spawned, so a program that asks for
            more than one keeps its own start under `if __name__ == "__main__"`.

    Raises:
        ConfigError: `out` is there and holds something.
        StoreError: it cannot be written, a journal cannot be listed, or a process died.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"--out {out}: expected a new or empty folder, found one with files")
    card = Card(format=format, settings=settings)
    make_folder(out.parent)
    temporary = out.with_name(f".{out.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    shutil.rmtree(temporary, ignore_errors=True)
    make_folder(temporary)
    try:
        if format in SEARCH_BY_SEARCH:
            job = Job(folder=temporary, format=format, choice=choice, words=tuple(words))
            _write_blocks(runs, job=job, card=card, processes=processes)
        else:
            _write_in_turn(runs, temporary, choice=choice, card=card, words=words)
        if format == "corpus" and card.splits["data"]:
            write_bytes(temporary / VIEWS_FILE, views_sql().encode())
        data_files = {
            table: {split: f"{table}/{split}-*.parquet" for split in sorted(rows)}
            for table, rows in card.splits.items()
            if rows and table in tables_of(format)
        }
        write_card(card, temporary, data_files=data_files)
        if out.exists():
            out.rmdir()
        os.replace(temporary, out)
    except OSError as error:
        raise store_error(out, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return card


def _write_blocks(runs: Sequence[RunDir], *, job: Job, card: Card, processes: int) -> None:
    """Write blocks of searches, then put their files and counts together in their order."""
    reading = [RunTexts(run, words=job.words) for run in runs]
    counts: list[Counter[str]] = [Counter() for _ in runs]
    with BlockPool(job, processes=processes) as pool:
        for block in _blocks(reading, counts=counts):
            pool.write(block)
        written = pool.finish()
    tables = tables_of(job.format)
    for table in tables:
        card.splits[table] = Counter()
    for each in written:
        card.add(each.card)
        for piece in each.pieces:
            texts = reading[piece.run_number]
            texts.losses.add(piece.losses)
            texts.redactor.counts.update(piece.redacted)
            counts[piece.run_number]["rows"] += piece.rows
    join_blocks(written, job.folder, tables=tables)
    for texts, count in zip(reading, counts, strict=True):
        _add_run(card, texts, count)


def _blocks(reading: Sequence[RunTexts], *, counts: Sequence[Counter[str]]) -> Iterator[Block]:
    """Give the searches of runs, block by block, and count them."""
    number = rows = 0
    pieces: list[Piece] = []
    for run_number, texts in enumerate(reading):
        piece = Piece(run=texts.run.path, run_number=run_number, searches=[])
        for search in _counted(texts, counts[run_number]):
            piece.searches.append(search)
            rows += rows_about(search)
            if rows >= blocks.BLOCK_ROWS:
                yield Block(number=number, pieces=(*pieces, piece))
                number, rows, pieces = number + 1, 0, []
                piece = Piece(run=texts.run.path, run_number=run_number, searches=[])
        if piece.searches:
            pieces.append(piece)
    if pieces:
        yield Block(number=number, pieces=tuple(pieces))


def _write_in_turn(
    runs: Sequence[RunDir], folder: Path, *, choice: Choice, card: Card, words: Sequence[str]
) -> None:
    """Write a format in which what is taken of a search depends on those before it."""
    compares = card.format == "sft" and choice.near_duplicate is not None
    seen = NearDuplicates(threshold=choice.near_duplicate or 1.0) if compares else None
    with Writing(folder, format=card.format, choice=choice, card=card, seen=seen) as writing:
        for run in runs:
            texts = RunTexts(run, words=words)
            count: Counter[str] = Counter()
            count["rows"] = writing.take(_counted(texts, count), texts=texts)
            _add_run(card, texts, count)
    if card.format == "guidelines":
        _write_guidelines(folder, writing.tallies)
        card.splits["guidelines"] = Counter(techniques=len(writing.tallies))


def _counted(texts: RunTexts, count: Counter[str]) -> Iterator[GatheredSearch]:
    for search in texts.searches():
        count["searches"] += 1
        count["unfinished"] += not search.has_ended
        yield search


def _add_run(card: Card, texts: RunTexts, count: Counter[str]) -> None:
    card.add_run(
        texts, searches=count["searches"], unfinished=count["unfinished"], rows=count["rows"]
    )


def _write_guidelines(folder: Path, tallies: list[Tally]) -> None:
    found = guidelines_json(tallies)
    write_bytes(folder / GUIDELINES_FILE, (canonical_json(found) + "\n").encode())
    write_bytes(folder / "guidelines.md", guidelines_text(found).encode())
    tracker = StrategyFile(folder / TRACKER_FILE)
    tracker.record("corpus", tallies)
    for lock in folder.glob(".*.lock"):
        lock.unlink(missing_ok=True)
