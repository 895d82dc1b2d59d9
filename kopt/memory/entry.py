"""Entries of a search memory: one thing learned, under one of five headings.

Source: KernelPro §3.4. The memory belongs to one search and only grows: an entry is never changed
nor taken back; what of it a prompt shows is the prompt's matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Heading = Literal[
    "search_findings", "errors_corrections", "successful_patterns", "key_files", "learnings"
]
HEADINGS: tuple[Heading, ...] = get_args(Heading)
TITLES: dict[Heading, str] = {
    "search_findings": "Search Findings",
    "errors_corrections": "Errors & Corrections",
    "successful_patterns": "Successful Patterns",
    "key_files": "Key Files",
    "learnings": "Learnings",
}
"""The paper's names of its sections."""
MAX_TEXT = 400
"""Characters of an entry; more is cut, visibly."""
MAX_NEW = 4
"""Entries that one expansion adds under one heading at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """One thing learned in an expansion."""

    heading: Heading
    text: str
    """One line."""


def entry_of(heading: Heading, text: str) -> MemoryEntry:
    """Return an entry of any text: its blanks folded to one line, cut where it is too long."""
    line = " ".join(text[: 8 * MAX_TEXT].split())
    if len(line) > MAX_TEXT:
        line = line[: MAX_TEXT - 1].rstrip() + "…"
    return MemoryEntry(heading=heading, text=line)


def fresh(entries: Iterable[MemoryEntry], known: Sequence[MemoryEntry]) -> tuple[MemoryEntry, ...]:
    """Return the entries that are to be added: new ones, at most MAX_NEW under each heading.

    Args:
        entries: of one expansion, the most telling first.
        known: what the memory has.
    """
    seen = {_key(each) for each in known}
    kept: list[MemoryEntry] = []
    for entry in entries:
        under = sum(each.heading == entry.heading for each in kept)
        if not entry.text or _key(entry) in seen or under >= MAX_NEW:
            continue
        seen.add(_key(entry))
        kept.append(entry)
    return tuple(kept)


def _key(entry: MemoryEntry) -> tuple[str, str]:
    return entry.heading, entry.text.casefold()
