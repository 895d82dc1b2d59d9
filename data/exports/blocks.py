"""Blocks: searches that are written together, to files of their own, by whatever process.

What a block's files hold follows from the block alone: nothing that was read for another one is
used for it. So the bytes of an export are the same however many processes wrote it.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kopt.data.atomic import make_folder, store_error
from kopt.data.corpus.gathering import GatheredSearch
from kopt.data.corpus.losses import Losses
from kopt.data.corpus.run_texts import RunTexts
from kopt.data.exports.choice import Choice
from kopt.data.exports.data_card import Card
from kopt.data.exports.tables import Format
from kopt.data.exports.writing import Writing
from kopt.data.rundir import RunDir

BLOCK_ROWS = 4_096
"""Rows from which on a block is full: 10 MB of events, 100 MB of JSON. Its last search is whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What all blocks of an export share."""

    folder: Path
    """Of the export while it is made."""
    format: Format
    choice: Choice
    words: tuple[str, ...]
    """Further names that must not remain in any text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Searches of one run."""

    run: Path
    run_number: int
    """Of the runs of the export, from 0."""
    searches: list[GatheredSearch]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Pieces of one or more runs, in order."""

    number: int
    """From 0: blocks follow each other in the export."""
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPiece:
    """What a piece adds to its run's entry in the data card."""

    run_number: int
    rows: int
    """Chosen or not."""
    losses: Losses
    redacted: Counter[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBlock:
    """What is known of a block whose files are there."""

    number: int
    card: Card
    pieces: tuple[WrittenPiece, ...]


def rows_about(search: GatheredSearch) -> int:
    """Return how many rows a search has, about: what fills a block."""
    return sum(max(len(each.made), len(each.answers)) for each in search.expansions.values())


def write_block(block: Block, job: Job) -> WrittenBlock:
    """Write a block's files to a folder of its own.

    Raises:
        StoreError: they cannot be written.
    """
    card = Card(format=job.format)
    pieces = []
    with Writing(
        _folder(job.folder, block.number), format=job.format, choice=job.choice, card=card
    ) as writing:
        for piece in block.pieces:
            texts = RunTexts(RunDir(piece.run), words=job.words)
            rows = writing.take(piece.searches, texts=texts)
            pieces.append(
                WrittenPiece(
                    run_number=piece.run_number,
                    rows=rows,
                    losses=texts.losses,
                    redacted=texts.redactor.counts,
                )
            )
    return WrittenBlock(number=block.number, card=card, pieces=tuple(pieces))


def join_blocks(blocks: Sequence[WrittenBlock], folder: Path, *, tables: Iterable[str]) -> None:
    """Move the files of blocks to where the export has them, numbered through.

    Args:
        blocks: in order.
        folder: of the export.
        tables: their names.

    Raises:
        StoreError: a file cannot be moved.
    """
    try:
        for table in tables:
            shards: Counter[str] = Counter()
            for block in blocks:
                for path in sorted((_folder(folder, block.number) / table).glob("*.parquet")):
                    split = path.name.rpartition("-")[0]
                    make_folder(folder / table)
                    os.rename(path, folder / table / f"{split}-{shards[split]:05d}.parquet")
                    shards[split] += 1
        for block in blocks:
            shutil.rmtree(_folder(folder, block.number), ignore_errors=True)
    except OSError as error:
        raise store_error(folder, error) from error


def _folder(export: Path, number: int) -> Path:
    return export / f".block-{number:06d}"
