"""The modules that an answer holds: in fenced blocks, in JSON, or bare."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from kopt.candidate import MAX_SOURCE_BYTES, Language
from kopt.problem import CANDIDATE_CLASS
from kopt.prompts.fences import Ending, Fence, content, endings, fences_of
from kopt.prompts.json_answer import codes, embedded_json, json_value, looks_like_json
from kopt.prompts.labels import spoken_language
from kopt.prompts.modules import ModuleReader, ModuleText, as_source, is_diff, is_meant
from kopt.prompts.plain_text import clean_text

MAX_MODULES = 64
"""Modules that are looked at in one answer."""
MAX_BARE_STARTS = 4
_CODE_LINE = re.compile(r"^(?:import |from \w|class |def |@\w|# ?\w|\"{3}|'{3})", re.MULTILINE)
_LAST_TAG = re.compile(r"\n[ \t]{0,8}</?\w{1,20}>\s{0,20}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A module of an answer."""

    module: ModuleText
    start: int
    """Offset of its block in the answer."""
    end: int
    """Offset after it."""
    strategy: str = ""
    """What stands beside it in JSON."""
    language: Language | None = None
    """What its fence or its JSON calls it."""


@dataclass(slots=True, kw_only=True)
class Contents:
    """What an answer holds."""

    modules: list[Found] = field(default_factory=list)
    """In order."""
    num_blocks: int = 0
    """Code blocks, those without a module included."""
    is_cut: bool = False
    """Whether a block with ModelNew is never closed, and is no module as far as it goes."""
    has_diff: bool = False
    """Whether a block is a patch."""
    too_long: int = 0
    """Bytes of the longest block that is too long to be read; 0 where none is."""


def contents_of(text: str) -> Contents:
    """Return the modules of an answer, and what else its code blocks are."""
    reader = ModuleReader()
    if looks_like_json(text):
        found = _from_json(json_value(text), reader, start=0, end=len(text))
        if found:
            return Contents(modules=found, num_blocks=len(found))
    contents = _fenced(text, reader)
    if not contents.modules and not contents.num_blocks:
        contents.modules = _from_json(embedded_json(text), reader, start=0, end=len(text))
        contents.modules = contents.modules or list(_bare(text, reader))
    return contents


def _fenced(text: str, reader: ModuleReader) -> Contents:
    contents = Contents()
    fences = fences_of(text)
    names = [match.start() for match in re.finditer(CANDIDATE_CLASS, text)]
    index = 0
    while index < len(fences) and len(contents.modules) < MAX_MODULES:
        opening = fences[index]
        places = endings(text, fences, index)
        ending, module = _whole_module(text, opening, places, names, reader)
        index = ending.next_fence
        end = fences[index - 1].end if ending.is_closed else ending.offset
        contents.num_blocks += 1
        if module is not None:
            language = spoken_language(opening.info.partition(" ")[0])
            contents.modules.append(
                Found(module=module, start=opening.start, end=end, language=language)
            )
        elif _is_named(names, opening.end, ending.offset):
            block = content(text, opening, ending.offset)
            _look_at(block, contents, reader, start=opening.start, end=end, ending=ending)
    return contents


def _whole_module(
    text: str, opening: Fence, places: list[Ending], names: list[int], reader: ModuleReader
) -> tuple[Ending, ModuleText | None]:
    """Return the first end of a block at which it is a whole module; else the nearest, and None."""
    for place in places:
        if _is_named(names, opening.end, place.offset):
            module = reader.whole(content(text, opening, place.offset))
            if module is not None:
                return place, module
    return places[0], None


def _look_at(
    block: str, contents: Contents, reader: ModuleReader, *, start: int, end: int, ending: Ending
) -> None:
    """Take in a block that names ModelNew and is no module that parses."""
    if len(block) > MAX_SOURCE_BYTES:
        contents.too_long = max(contents.too_long, len(block.encode()))
    elif looks_like_json(block):
        contents.modules += _from_json(json_value(block), reader, start=start, end=end)
    elif is_diff(block):
        contents.has_diff = True
    elif not ending.is_closed:
        contents.is_cut = True
    elif is_meant(block):
        flawed = ModuleText(source=as_source(block), tree=None)
        contents.modules.append(Found(module=flawed, start=start, end=end))


def _from_json(value: object | None, reader: ModuleReader, *, start: int, end: int) -> list[Found]:
    """Return the modules among the strings of a JSON value, all at the place of the JSON."""
    found = []
    for code in islice(codes(value), MAX_MODULES):
        text = clean_text(code.text)
        inner = [each.module for each in _fenced(text, reader).modules] if "```" in text else []
        whole = reader.whole(text)
        if whole is not None:
            inner = [whole]
        elif not inner and is_meant(text) and len(text) <= MAX_SOURCE_BYTES:
            inner = [ModuleText(source=as_source(text), tree=None)]
        found += [
            Found(module=each, start=start, end=end, strategy=code.strategy, language=code.language)
            for each in inner
        ]
    return found


def _bare(text: str, reader: ModuleReader) -> Iterator[Found]:
    """Yield the module that an answer without a block ends in, or is."""
    if CANDIDATE_CLASS not in text:
        return
    last_tag = _LAST_TAG.search(text, max(0, len(text) - 64))
    end = last_tag.start() if last_tag else len(text)
    for match in islice(_CODE_LINE.finditer(text), MAX_BARE_STARTS):
        module = reader.whole(text[match.start() : end])
        if module is not None:
            yield Found(module=module, start=match.start(), end=end)
            return


def _is_named(names: list[int], start: int, end: int) -> bool:
    """Whether one of the sorted offsets lies in [start, end)."""
    index = bisect_left(names, start)
    return index < len(names) and names[index] < end
