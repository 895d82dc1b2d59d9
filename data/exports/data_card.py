"""The data card of an export: what is in it and what is not, counted from the data themselves.

`README.md` opens with the block that `datasets.load_dataset` reads its configurations from; beside
it lies `card.json`, with all counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kopt.data.atomic import write_bytes
from kopt.data.corpus.losses import Losses
from kopt.data.corpus.run_texts import RunTexts
from kopt.data.exports.tables import Format
from kopt.identity import canonical_json
from kopt.version import __version__

COUNTED = (
    *("problem_family", "problem_name", "problem_licence", "programmer", "verdict", "language"),
    *("device", "ladder", "track", "mode", "prompt_origin", "preference", "turns"),
)
"""Columns whose values are counted."""
MAX_VALUES = 60
"""Values of a column that the text lists; the JSON has them all."""
SKEWED = 0.5
"""Share of one value from which on the card warns."""
_TITLES = {
    "corpus": "everything that was tried: a row for each candidate, and for each completion "
    "without one",
    "sft": "conversations that end in a candidate worth imitating",
    "dpo": "pairs of answers to one prompt",
    "rl": "episodes with a reward for each step, and prompts alone",
    "guidelines": "which techniques paid in which kind of work",
}


@dataclass(slots=True)
class Card:
    """What is counted while an export is written."""

    format: Format
    settings: dict[str, Any] = field(default_factory=dict)
    """What was asked for, beside the defaults."""
    runs: list[dict[str, Any]] = field(default_factory=list)
    splits: dict[str, Counter[str]] = field(default_factory=dict)
    """Configuration to split to rows."""
    families: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Split to the families in it."""
    values: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Column to value to rows."""
    left_out: Counter[str] = field(default_factory=Counter)
    losses: Losses = field(default_factory=Losses)
    redacted: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)
    """Rows there were before anything was left out, by verdict."""
    faults: Counter[str] = field(default_factory=Counter)
    """Completions that held no candidate, by why."""

    def count(self, row: Mapping[str, Any], *, split: str) -> None:
        """Count a row that was written."""
        for column in COUNTED:
            if column in row:
                value = row[column]
                self.values[column]["" if value is None else str(value)] += 1
        self.families[split].add(str(row.get("problem_family", "")))

    def add(self, other: Card) -> None:
        """Count what was counted of other rows of the same export; runs are added by `add_run`."""
        for split, families in other.families.items():
            self.families[split] |= families
        for column, counts in other.values.items():
            self.values[column].update(counts)
        for table, counts in other.splits.items():
            self.splits.setdefault(table, Counter()).update(counts)
        self.left_out.update(other.left_out)
        self.tried.update(other.tried)
        self.faults.update(other.faults)

    def add_run(self, texts: RunTexts, *, searches: int, unfinished: int, rows: int) -> None:
        """Count a run that was read to its end."""
        status = "running" if texts.is_running else "interrupted" if unfinished else "ended"
        versions: Mapping[str, Any] = texts.manifest.get("versions") or {}
        device: Mapping[str, Any] = texts.manifest.get("device") or {}
        self.runs.append(
            {
                "run": texts.name,
                "status": status,
                "searches": searches,
                "unfinished_searches": unfinished,
                "rows": rows,
                "kopt": versions.get("kopt"),
                "torch": versions.get("torch"),
                "device": device.get("name"),
                "arch": device.get("arch"),
            }
        )
        self.redacted.update(texts.redactor.counts)
        self.losses.counts.update(texts.losses.counts)
        self.losses.places += [f"{texts.name}: {place}" for place in texts.losses.places]

    def to_json(self) -> dict[str, Any]:
        """Return everything that was counted."""
        return {
            "format": self.format,
            "kopt": __version__,
            "settings": self.settings,
            "runs": self.runs,
            "rows": {name: dict(sorted(counts.items())) for name, counts in self.splits.items()},
            "families": {name: sorted(found) for name, found in sorted(self.families.items())},
            "values": {name: _ranked(counts) for name, counts in self.values.items()},
            "tried": _ranked(self.tried),
            "completions_without_candidate": _ranked(self.faults),
            "left_out": _ranked(self.left_out),
            "lost": _ranked(self.losses.counts),
            "lost_places": self.losses.places,
            "redacted": _ranked(self.redacted),
            "warnings": self.warnings(),
        }

    def warnings(self) -> list[str]:
        """Return what a reader should know before training on it, a line each."""
        found = []
        for column, word in (
            ("problem_family", "one problem family"),
            ("programmer", "one author"),
            ("device", "one device"),
        ):
            counts = self.values.get(column, Counter())
            for value, number in counts.most_common(1):
                share = number / counts.total()
                if share > SKEWED:
                    found.append(f"{share:.0%} of the rows are of {word} ({value or 'not known'})")
        rebuilt = self.values.get("prompt_origin", Counter())
        if rebuilt["rebuilt"]:
            found.append(
                f"{rebuilt['rebuilt'] / rebuilt.total():.0%} of the rows have a prompt that nobody "
                "was sent (prompt_origin: rebuilt): their author reads no words"
            )
        unlicensed = self.values.get("problem_licence", Counter())[""]
        if unlicensed:
            found.append(f"{unlicensed} row(s) are of problems whose licence is not stated")
        ladders = self.values.get("ladder", Counter())
        if len([name for name in ladders if name]) > 1:
            found.append("rows of several ladders: their verdicts do not compare")
        for run in self.runs:
            if run["status"] == "running":
                found.append(f"run {run['run']} still goes on: it is here as far as it had come")
            elif run["status"] == "interrupted":
                found.append(f"run {run['run']} was interrupted: it is here as far as it had come")
        if self.losses.counts:
            found.append(f"{self.losses.counts.total()} thing(s) of the runs are lost; see Lost")
        return found


def write_card(card: Card, folder: Path, *, data_files: Mapping[str, Mapping[str, str]]) -> None:
    """Write `README.md` and `card.json`.

    Args:
        card: of the export.
        folder: of the export.
        data_files: configuration to split to pattern of files; empty where it has no tables.

    Raises:
        StoreError: they cannot be written.
    """
    record = card.to_json()
    write_bytes(folder / "card.json", (canonical_json(record) + "\n").encode())
    write_bytes(folder / "README.md", _text(card, record, data_files).encode())


def _text(
    card: Card, record: Mapping[str, Any], data_files: Mapping[str, Mapping[str, str]]
) -> str:
    lines = [*_front(data_files), f"# kopt {card.format}: {_TITLES[card.format]}", ""]
    for name, counts in record["rows"].items():
        rows = ", ".join(f"{split} {number}" for split, number in counts.items()) or "none"
        lines.append(f"Rows ({name}): {rows}.")
    families = [
        f"{split}: {', '.join(name or '(not known)' for name in names)}"
        for split, names in record["families"].items()
    ]
    lines.append("Splits go by problem family, never by row. " + "; ".join(families))
    lines += ["", "## Know before you train", ""]
    lines += [f"- {line}" for line in record["warnings"]] or ["- nothing stands out"]
    lines += ["", "## Runs", ""]
    lines += [f"- {', '.join(f'{key} {value}' for key, value in run.items())}" for run in card.runs]
    for title, key in (
        ("What was tried, by verdict", "tried"),
        ("Completions that held no candidate", "completions_without_candidate"),
        ("Left out", "left_out"),
        ("Lost", "lost"),
        ("Redacted", "redacted"),
    ):
        lines += ["", f"## {title}", "", *_listed(record[key])]
    lines += [f"- {place}" for place in record["lost_places"]]
    for column, counts in record["values"].items():
        lines += ["", f"## Rows by {column}", "", *_listed(counts)]
    lines += ["", "## Settings", "", *_listed(record["settings"])]
    return "\n".join(lines) + "\n"


def _front(data_files: Mapping[str, Mapping[str, str]]) -> list[str]:
    if not data_files:
        return []
    lines = ["---", "configs:"]
    for name, files in data_files.items():
        lines += [f"- config_name: {name}", "  data_files:"]
        for split, pattern in files.items():
            lines += [f"  - split: {split}", f"    path: {pattern}"]
    return [*lines, "---", ""]


def _listed(counts: Mapping[str, Any]) -> list[str]:
    items = list(counts.items())
    lines = [f"- {value or '(not known)'}: {number}" for value, number in items[:MAX_VALUES]]
    if len(items) > MAX_VALUES:
        lines.append(f"- and {len(items) - MAX_VALUES} more (card.json)")
    return lines or ["- nothing"]


def _ranked(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
