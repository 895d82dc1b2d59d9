"""Search in a source tree: ranked, by words; lines that define what is asked for come first.

An inverted index from identifiers to files finds the files; their lines are scored as text. A word
matches an identifier that it is, or is a part of. Score of a file, for the words w that it has:

    coverage^2 * sum of weight_w * log(1 + files / files with w)

with weight 1 for a whole identifier, 0.4 for a part of one and 2 where the file defines it;
coverage is the share of the words.
"""

from __future__ import annotations

import bisect
import fnmatch
import heapq
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kopt.cutlass.symbols import IDENTIFIER, symbols_of

MAX_WORDS = 12
MAX_HITS = 10
MAX_FILES = 24
"""Files whose lines are looked at."""
MAX_LINES_OF_FILE = 3
"""Hits in one file: generated headers hold the same line a thousand times."""
MAX_MATCHES_OF_FILE = 2_000
"""Places in one file that are looked at, of each word."""
PART = 0.4
"""Weight of a word that is only a part of an identifier."""
DEFINED = 2.0
"""Weight of a word in a file that defines it."""
DEFINES = 3.0
"""Added to a line that defines a word, for each; half of it where the word is a part of the name.
A definition that is twice as specific as a mention still comes first."""
_FIRST = ("include/cute/", "include/cutlass/", "media/docs/", "examples/", "")
_SIDE = 0.15
"""Taken off a score for each place down in `_FIRST`."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A line that answers a search."""

    path: str
    """From the tree's root."""
    line: int
    """From 1."""
    score: float


class SourceIndex:
    """The index of one tree's texts. Reading many megabytes takes seconds, searching does not."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        """Read the texts.

        Args:
            texts: by path from the root, with `/`.
        """
        self._texts = texts
        self._paths = sorted(texts)
        self._files_of: dict[str, list[int]] = {}
        self._defined: list[dict[int, str]] = []
        self._definers: dict[str, set[int]] = {}
        self._read: dict[int, _Lines] = {}
        for number, path in enumerate(self._paths):
            text = texts[path]
            for word in {each.lower() for each in set(IDENTIFIER.findall(text))}:
                self._files_of.setdefault(word, []).append(number)
            defined = {each.line: each.name.lower() for each in symbols_of(text)}
            for name in defined.values():
                self._definers.setdefault(name, set()).add(number)
            self._defined.append(defined)
        self._vocabulary = list(self._files_of)

    @property
    def num_files(self) -> int:
        """Files that are searched."""
        return len(self._paths)

    def search(
        self, query: str, *, scope: str | None = None, max_hits: int = MAX_HITS
    ) -> list[Hit]:
        """Return the best lines, best first; none where no word is found.

        Args:
            query: words, or a piece of code.
            scope: only files below this folder, or whose path matches this glob.
            max_hits: at most so many.
        """
        words = list(dict.fromkeys(each.lower() for each in _WORD.findall(query)))[:MAX_WORDS]
        if not words:
            return []
        phrase = " ".join(query.lower().split())
        scored = self._files(words, scope=scope)
        best = heapq.nlargest(MAX_FILES, scored.items(), key=lambda item: (item[1], -item[0]))
        hits: list[Hit] = []
        for number, score in best:
            hits += self._lines(number, words=words, phrase=phrase, file_score=score)
        hits.sort(key=lambda hit: (-hit.score, hit.path, hit.line))
        return hits[:max_hits]

    def _files(self, words: Sequence[str], *, scope: str | None) -> dict[int, float]:
        allowed = None if scope is None else self._in_scope(scope)
        scores: dict[int, float] = {}
        found: dict[int, int] = {}
        for word in words:
            weights: dict[int, float] = {}
            for name in self._vocabulary:
                if word in name:
                    weight = 1.0 if word == name else PART
                    for number in self._files_of[name]:
                        if weights.get(number, 0.0) < weight:
                            weights[number] = weight
            weights |= dict.fromkeys(self._definers.get(word, ()), DEFINED)
            rarity = math.log(1 + len(self._paths) / max(1, len(weights)))
            for number, weight in weights.items():
                scores[number] = scores.get(number, 0.0) + weight * rarity
                found[number] = found.get(number, 0) + 1
        return {
            number: score * (found[number] / len(words)) ** 2
            for number, score in scores.items()
            if allowed is None or number in allowed
        }

    def _in_scope(self, scope: str) -> set[int]:
        stem = scope.strip("/")
        if any(mark in stem for mark in "*?["):
            return {n for n, path in enumerate(self._paths) if fnmatch.fnmatch(path, stem)}
        below = f"{stem}/" if stem not in ("", ".") else ""
        return {n for n, path in enumerate(self._paths) if path == stem or path.startswith(below)}

    def _lines(
        self, number: int, *, words: Sequence[str], phrase: str, file_score: float
    ) -> list[Hit]:
        path = self._paths[number]
        read = self._lines_of(number)
        by_line = {line: read.lower(line) for line in read.having(words)}
        side = next(n for n, prefix in enumerate(_FIRST) if path.startswith(prefix))
        scored: list[tuple[float, int]] = []
        for line, text in by_line.items():
            num_present = sum(word in text for word in words)
            score = 4 * (num_present / len(words)) ** 2
            name = self._defined[number].get(line)
            if name is not None:
                score += sum(
                    DEFINES if word == name else DEFINES / 2 for word in words if word in name
                ) / len(words)
            if phrase in " ".join(text.split()):
                score += 1.0
            scored.append((score, line))
        top = heapq.nlargest(MAX_LINES_OF_FILE, scored, key=lambda each: (each[0], -each[1]))
        # A file's own score is a matter of its whole text: it tells equal lines apart.
        extra = 0.1 * file_score - _SIDE * side
        return [Hit(path=path, line=line, score=score + extra) for score, line in top]

    def _lines_of(self, number: int) -> _Lines:
        read = self._read.get(number)
        if read is None:
            read = self._read[number] = _Lines(self._texts[self._paths[number]])
        return read


class _Lines:
    """One text by its lines, in lower case."""

    def __init__(self, text: str) -> None:
        self._text = text.lower()
        self._starts = [0, *(match.end() for match in re.finditer("\n", self._text))]

    def having(self, words: Sequence[str]) -> set[int]:
        """Return lines that have one of the two rarest of the words that are in the text."""
        counted = sorted((self._text.count(word), word) for word in words)
        present = [word for count, word in counted if count]
        found: set[int] = set()
        for word in present[:2]:
            at = -1
            for _ in range(MAX_MATCHES_OF_FILE):
                at = self._text.find(word, at + 1)
                if at < 0:
                    break
                found.add(bisect.bisect_right(self._starts, at))
        return found

    def lower(self, line: int) -> str:
        ends = self._starts[line] if line < len(self._starts) else len(self._text)
        return self._text[self._starts[line - 1] : ends]
