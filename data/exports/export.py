"""An export, from run folders to a folder that is there whole or not at all.

Runs are read search by search; a search's texts are read when its rows are written. What is held is
the searches under way, one row group of each split, and what near-duplicates need.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa

from kopt.data.atomic import TEMPORARY_SUFFIX, make_folder, store_error, write_bytes
from kopt.data.corpus.columns import CORPUS_SCHEMA
from kopt.data.corpus.full_row import full_row
from kopt.data.corpus.near_duplicates import NearDuplicates
from kopt.data.corpus.run_texts import RunTexts
from kopt.data.corpus.trial_row import TrialRow, trial_rows
from kopt.data.exports.choice import Choice
from kopt.data.exports.data_card import Card, write_card
from kopt.data.exports.dpo import DPO_SCHEMA, dpo_rows
from kopt.data.exports.guidelines import guidelines_json, guidelines_text, search_tallies
from kopt.data.exports.rl import EPISODES_SCHEMA, PROMPTS_SCHEMA, episode_rows, prompt_rows
from kopt.data.exports.searched import Searched
from kopt.data.exports.sft import SFT_SCHEMA, sft_rows
from kopt.data.exports.shard_writer import ShardWriter
from kopt.data.rundir import RunDir
from kopt.data.strategies import StrategyFile
from kopt.errors import ConfigError
from kopt.identity import canonical_json
from kopt.memory.tracker import Tally, summed

Format = Literal["corpus", "sft", "dpo", "rl", "guidelines"]
FORMATS: tuple[Format, ...] = get_args(Format)
GUIDELINES_FILE = "guidelines.json"
TRACKER_FILE = "tracker.json"

Rows = Callable[[Searched], Iterator[dict[str, Any]]]


def export(
    runs: Sequence[RunDir],
    out: Path,
    *,
    format: Format,  # noqa: A002 - what users call it
    choice: Choice,
    settings: dict[str, Any],
    words: Sequence[str] = (),
) -> Card:
    """Write an export and return its card.

    Equal runs, choice and settings give equal bytes.

    Args:
        runs: in the order wanted.
        out: folder to make; may be there if it is empty.
        format: what for.
        choice: what is taken; a corpus takes everything.
        settings: what was asked for, for the card.
        words: further names that must not remain in any text.

    Raises:
        ConfigError: `out` is there and holds something.
        StoreError: it cannot be written, or a journal cannot be listed.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"--out {out}: expected a new or empty folder, found one with files")
    card = Card(format=format, settings=settings)
    make_folder(out.parent)
    temporary = out.with_name(f".{out.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    shutil.rmtree(temporary, ignore_errors=True)
    make_folder(temporary)
    try:
        data_files = _write(runs, temporary, format=format, choice=choice, card=card, words=words)
        write_card(card, temporary, data_files=data_files)
        if out.exists():
            out.rmdir()
        os.replace(temporary, out)
    except OSError as error:
        raise store_error(out, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return card


def _write(
    runs: Sequence[RunDir],
    folder: Path,
    *,
    format: Format,  # noqa: A002
    choice: Choice,
    card: Card,
    words: Sequence[str],
) -> dict[str, dict[str, str]]:
    """Write the tables of an export; return their files for the card."""
    tables = _tables(format)
    keeps_all = format in ("corpus", "guidelines", "dpo", "rl") or choice.near_duplicate is None
    seen = None if keeps_all else NearDuplicates(threshold=choice.near_duplicate or 1.0)
    tallies: list[Tally] = []
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(ShardWriter(folder / name, schema))
            for name, (schema, _) in tables.items()
        }
        for run in runs:
            texts = RunTexts(run, words=words)
            for searched in _searches(texts, choice=choice, seen=seen, card=card):
                problem = texts.problem(searched.problem)
                split = choice.splits.split("" if problem is None else problem.family)
                for name, (_, rows) in tables.items():
                    for row in rows(searched):
                        writers[name].add(split, row, characters=_characters(row))
                        if name == next(iter(tables)):
                            card.count(row, split=split)
                if format == "guidelines":
                    tallies += search_tallies(searched)
                    tallies = list(summed(tallies))
    if format == "guidelines":
        _write_guidelines(folder, tallies)
        card.splits["guidelines"] = Counter(techniques=len(tallies))
    for name, writer in writers.items():
        card.splits[name] = Counter({str(split): rows for split, rows in writer.rows.items()})
    return {
        name: {split: f"{name}/{split}-*.parquet" for split in sorted(writer.rows)}
        for name, writer in writers.items()
        if writer.rows
    }


def _searches(
    texts: RunTexts, *, choice: Choice, seen: NearDuplicates | None, card: Card
) -> Iterator[Searched]:
    """Give the searches of a run, and count what there is before anything is left out."""
    searches = unfinished = total = 0
    for search in texts.searches():
        rows = list(trial_rows(search, texts.losses))
        searches += 1
        unfinished += not search.has_ended
        total += len(rows)
        for row in rows:
            _count_tried(card, row, texts=texts)
        yield Searched(search, rows, texts=texts, choice=choice, seen=seen, left_out=card.left_out)
    card.add_run(texts, searches=searches, unfinished=unfinished, rows=total)


def _count_tried(card: Card, row: TrialRow, *, texts: RunTexts) -> None:
    if row.made is not None:
        card.tried["not judged" if row.judged is None else row.judged.kind] += 1
    elif row.answer is not None:
        fault = texts.redactor.text(row.answer["fault"] or "it was not used")
        card.faults[fault[:120]] += 1


def _tables(format: Format) -> dict[str, tuple[pa.Schema, Rows]]:  # noqa: A002
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


def _full_rows(searched: Searched) -> Iterator[dict[str, Any]]:
    for row in searched.rows:
        yield full_row(searched.search, row, texts=searched.texts)


def _characters(row: dict[str, Any]) -> int:
    """Characters of a row's texts, about: what a row group's memory is bounded by."""
    total = 0
    for value in row.values():
        kind = type(value)
        if kind is str:
            total += len(value)
        elif kind is dict:
            total += _characters(value)
        elif kind is list and value:
            nested = type(value[0]) is dict
            total += sum(map(_characters, value)) if nested else 8 * len(value)
    return total


def _write_guidelines(folder: Path, tallies: list[Tally]) -> None:
    found = guidelines_json(tallies)
    write_bytes(folder / GUIDELINES_FILE, (canonical_json(found) + "\n").encode())
    write_bytes(folder / "guidelines.md", guidelines_text(found).encode())
    tracker = StrategyFile(folder / TRACKER_FILE)
    tracker.record("corpus", tallies)
    for lock in folder.glob(".*.lock"):
        lock.unlink(missing_ok=True)
