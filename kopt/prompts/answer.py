"""Reading an answer: untrusted text of a model or a person, to candidates or to one line why not.

Whatever the text is, reading it raises nothing and takes time linear in its length. A module that
does not parse is a candidate all the same: its verdict tells its author the line.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from kopt.candidate import MAX_SOURCE_BYTES, Candidate, Language
from kopt.ports import WriteRequest
from kopt.problem import CANDIDATE_CLASS
from kopt.prompts.blocks import Contents, Found, contents_of
from kopt.prompts.json_answer import looks_like_json
from kopt.prompts.labels import declared_language, declared_strategy, first_sentence
from kopt.prompts.language import chosen_language
from kopt.prompts.modules import ModuleText, as_source, is_diff
from kopt.prompts.parsing import parsed
from kopt.prompts.plain_text import clean_text
from kopt.prompts.thinking import without_thinking

SAME_AS_PARENT = "same as its parent"
MAX_HEADER = 4_000
"""Characters at a module's top in which its labels are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an answer came to."""

    candidates: tuple[Candidate, ...]
    """In the answer's order, all different."""
    fault: str
    """Why there is none, in one line; empty where there is one."""


def read_answer(
    text: str, *, request: WriteRequest, programmer: str, max_candidates: int = 1
) -> Reading:
    """Return the candidates of an answer.

    Of several modules that define ModelNew, the last whole one counts, or with `max_candidates`
    above 1 the first so many. What repeats the parent, or is in a language that cannot be built on
    the target, is left out.

    Args:
        text: as it came.
        request: what was asked; gives the parent and the languages.
        programmer: who wrote it, for the candidates' label.
        max_candidates: candidates wanted, >= 1.
    """
    body, is_thinking = without_thinking(clean_text(text))
    contents = contents_of(body)
    modules = contents.modules
    faults: list[str] = []
    candidates: dict[str, Candidate] = {}
    for index in _in_preference([each.module for each in modules], several=max_candidates > 1):
        found = modules[index]
        before = body[modules[index - 1].end if index else 0 : found.start]
        # Between two modules, words are about the second.
        after = body[found.end :] if index + 1 == len(modules) else ""
        strategy = _strategy(found, before=before, after=after)
        if not strategy and index and max_candidates == 1:
            strategy = declared_strategy(body[: found.start])
        candidate = Candidate(
            source=found.module.source,
            language=_language(found, before=before),
            parent=request.expansion.parent,
            strategy=strategy or _first_sentence(before, after, *_header(found.module)),
            programmer=programmer,
        )
        fault = _fault(candidate, found.module, request)
        if fault:
            faults.append(fault)
        else:
            candidates.setdefault(candidate.candidate_id, candidate)
            if len(candidates) == max_candidates:
                break
    if candidates:
        return Reading(candidates=tuple(candidates.values()), fault="")
    why = faults[0] if faults else _why_none(contents, body, is_thinking=is_thinking)
    return Reading(candidates=(), fault=why)


def _in_preference(modules: Sequence[ModuleText], *, several: bool) -> list[int]:
    """Return the indices of modules in the order in which they are tried."""
    order = range(len(modules))
    whole = [index for index in order if not modules[index].is_sketch]
    if several:
        return whole or list(order)
    parse = [index for index in reversed(whole) if modules[index].tree is not None]
    return [*parse, *(index for index in reversed(order) if index not in parse)]


def _strategy(found: Found, *, before: str, after: str) -> str:
    """Return the strategy that an answer names for a module; empty where it names none."""
    texts = (before, *_header(found.module), after)
    return found.strategy or next(filter(None, map(declared_strategy, texts)), "")


def _language(found: Found, *, before: str) -> Language:
    module = found.module
    named = [declared_language(text) for text in (*_header(module), before)]
    declared = next((each for each in named if each is not None), found.language)
    return chosen_language(module.source, tree=module.tree, declared=declared)


def _header(module: ModuleText) -> tuple[str, str]:
    """Return a module's comments above its first statement, and its docstring."""
    comments = []
    for line in module.source[:MAX_HEADER].split("\n"):
        if not line.startswith("#"):
            break
        comments.append(line.lstrip("# "))
    docstring = ast.get_docstring(module.tree) if module.tree is not None else None
    return "\n".join(comments), (docstring or "")[:MAX_HEADER]


def _first_sentence(*texts: str) -> str:
    sentences = (first_sentence(text.partition("```")[0]) for text in texts)
    return next(filter(None, sentences), "")


def _fault(candidate: Candidate, module: ModuleText, request: WriteRequest) -> str:
    """Return why a module cannot be used here, in one line; empty where it can."""
    allowed = request.target.languages
    size = len(candidate.source.encode())
    if size > MAX_SOURCE_BYTES:
        return f"the code has {size} bytes; at most {MAX_SOURCE_BYTES} are read"
    if candidate.language not in allowed:
        return (
            f"language {candidate.language} cannot be built here; "
            f"choose one of {', '.join(allowed)}"
        )
    parent = request.parent.candidate if request.parent is not None else None
    is_same = (
        parent is not None
        and parent.language == candidate.language
        and _is_same(module, as_source(clean_text(parent.source)))
    )
    return SAME_AS_PARENT if is_same else ""


def _is_same(module: ModuleText, source: str) -> bool:
    """Whether two module texts are one program, comments on lines of their own left aside."""
    if module.source == source:
        return True
    if module.tree is None or _code_lines(module.source) != _code_lines(source):
        return False
    # A line that begins with # may be C text in a string: the trees decide.
    tree = parsed(source)
    try:
        return tree is not None and ast.dump(module.tree) == ast.dump(tree)
    except RecursionError:
        return False


def _code_lines(source: str) -> list[str]:
    lines = (line.strip() for line in source.split("\n"))
    return [line for line in lines if line and not line.startswith("#")]


def _why_none(contents: Contents, body: str, *, is_thinking: bool) -> str:
    """Return why an answer holds no module, in one line."""
    if contents.too_long:
        return f"the code has {contents.too_long} bytes; at most {MAX_SOURCE_BYTES} are read"
    if contents.is_cut:
        return "the code is cut off: its block is never closed, and what there is does not parse"
    if contents.has_diff:
        return "a patch, not a module: the whole module is wanted"
    if contents.num_blocks:
        blocks = (
            "1 code block" if contents.num_blocks == 1 else f"{contents.num_blocks} code blocks"
        )
        return f"no {CANDIDATE_CLASS}: {blocks}, and none defines it at module level"
    if is_thinking:
        return "the answer ends while it is still reasoning"
    if not body.strip():
        return "the answer is empty"
    if is_diff(body):
        return "a patch, not a module: the whole module is wanted"
    if looks_like_json(body):
        return "JSON that cannot be read, or holds no module; it may be cut off"
    return "no code block"
