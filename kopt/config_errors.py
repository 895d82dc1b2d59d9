"""Validation errors as lines for a user: the key's path, what was expected, what was found."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kopt.section import SECRET_FAULT

SHOWN_CHARACTERS = 80
"""Most of a wrong value that is repeated."""


def error_lines(error: ValidationError, *, model: type[BaseModel]) -> list[str]:
    """Return one line for each error: `conf search.c_uct: Input should be … (got 'x')`.

    Args:
        error: what validation of `model` raised.
        model: the class at the root, for close matches of keys that do not exist.
    """
    details = error.errors(include_url=False)
    inner = {detail["loc"][:end] for detail in details for end in range(len(detail["loc"]))}
    # A tuple whose only item is wrong is reported a second time, as too short.
    return [
        _line(detail, model)
        for detail in details
        if detail["type"] != "too_short" or detail["loc"] not in inner
    ]


def known_paths(model: type[BaseModel]) -> list[str]:
    """Return every key path of a section and those below it (`search.c_uct`), in order."""
    paths: list[str] = []
    for name, field in model.model_fields.items():
        paths.append(name)
        for section in _sections(field.annotation):
            paths += [f"{name}.{inner}" for inner in known_paths(section)]
    return list(dict.fromkeys(paths))


def close_keys(path: str, *, model: type[BaseModel]) -> list[str]:
    """Return existing key paths that a mistyped one may mean, the likeliest first."""
    paths = known_paths(model)
    parent, _, key = path.rpartition(".")
    siblings = {p.rpartition(".")[2]: p for p in paths if p.rpartition(".")[0] == parent}
    close = [siblings[name] for name in difflib.get_close_matches(key, siblings, n=2, cutoff=0.6)]
    close += [p for p in paths if p.rpartition(".")[2] == key]
    return list(dict.fromkeys(close or difflib.get_close_matches(path, paths, n=2)))[:3]


def _line(detail: ErrorDetails, model: type[BaseModel]) -> str:
    path = ".".join(_keys(detail["loc"], model))
    if detail["type"] == "extra_forbidden":
        close = close_keys(path, model=model)
        if path in close:
            parent = path.rpartition(".")[0]
            # The tag of the union's member is ahead of the key.
            return (
                f"conf {path}: {parent}={detail['loc'][-2]} has no such key; "
                f"{_kinds_with(path, model)} has"
            )
        hint = f"did you mean {', '.join(close)}?" if close else "see conf/README.md"
        return f"conf {path}: no such key; {hint}"
    if detail["type"] == "missing":
        return f"conf {path}: a value is required"
    if detail["type"] == "union_tag_invalid":
        context = detail.get("ctx", {})
        return f"conf {path}.kind: {context.get('tag')!r} is none of {context.get('expected_tags')}"
    if detail["type"] == "union_tag_not_found":
        return f"conf {path}.kind: a value is required"
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == SECRET_FAULT:
        return f"conf {path}: {message}"
    if not path:  # of several keys together: the message names them
        return f"conf: {message}"
    return f"conf {path}: {message} (got {_shown(detail['input'])})"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _keys(location: tuple[int | str, ...], model: type[BaseModel]) -> Iterator[str]:
    """The location without the tags that pydantic puts in for members of a union."""
    sections: list[type[BaseModel]] = [model]
    for depth, part in enumerate(location):
        known = [s.model_fields[part] for s in sections if part in s.model_fields]
        tagged = [s for s in sections if _kind(s) == part]  # a key may be named as a kind is
        if len(sections) > 1 and depth + 1 < len(location) and (tagged or not known):
            sections = tagged or sections
            continue
        yield str(part)
        sections = [inner for field in known for inner in _sections(field.annotation)]


def _kinds_with(path: str, model: type[BaseModel]) -> str:
    """Return the kinds of a section that have a key: `search=mcts, search=beam`."""
    sections: list[type[BaseModel]] = [model]
    *parents, key = path.split(".")
    for name in parents:
        fields = [s.model_fields[name] for s in sections if name in s.model_fields]
        sections = [inner for field in fields for inner in _sections(field.annotation)]
    parent = ".".join(parents)
    return ", ".join(f"{parent}={_kind(s)}" for s in sections if key in s.model_fields)


def _kind(section: type[BaseModel]) -> object:
    field = section.model_fields.get("kind")
    return None if field is None else field.default


def _sections(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - a type form
    """The section classes of an annotation, members of a union each."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, types.UnionType, Annotated):
        return [inner for arg in get_args(annotation) for inner in _sections(arg)]
    return []
