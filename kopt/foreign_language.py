"""Languages of other packages and of a user's file: kernels that Python modules write, as Triton's.

Such a language needs no build of ours: a candidate imports its package, and what it compiles it
compiles when it is imported or called, in the child that judges it. kopt has to know what imports
tell the language, and what authors are told of it. `evaluate.languages` names those of a run; every
process of the run takes them up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import cast

from kopt.candidate import LANGUAGES, Language
from kopt.errors import ConfigError
from kopt.ports import Target
from kopt.registry import Registry

LANGUAGE_PATTERN = r"^[a-z]{1,12}$"
"""What a language is called, by kopt or by others: prompts and fences of answers can name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignLanguage:
    """A language that kernels are written in, by a package that Python imports."""

    name: str
    """One word of small letters, none of ours: what candidates, prompts and fences call it."""
    modules: tuple[str, ...]
    """Modules whose import, or that of one below, tells it; the first has to be installed."""
    guide: str
    """Markdown for authors: how a kernel is written, with one whole example."""
    devices: tuple[str, ...] = ("cuda",)
    """`cuda`, `cpu` or both: where it runs."""


FOREIGN_LANGUAGES: Registry[ForeignLanguage] = Registry(
    "language", entry_point_group="kopt.languages"
)
"""Factories are called without arguments."""
_taken: dict[str, ForeignLanguage] = {}


def take_up(kinds: Iterable[str]) -> None:
    """Know the languages of these kinds in this process from now on.

    Args:
        kinds: `package/name` of an entry point, or `path/to/mine.py:NAME`.

    Raises:
        ConfigError: there is none of that kind, or what it gives cannot be used.
    """
    for kind in kinds:
        made = FOREIGN_LANGUAGES.create(kind)
        if not isinstance(made, ForeignLanguage):
            raise ConfigError(f"language {kind}: expected a ForeignLanguage, found {made!r:.80}")
        if (
            not re.fullmatch(LANGUAGE_PATTERN, made.name)
            or made.name in LANGUAGES
            or not made.modules
        ):
            raise ConfigError(
                f"language {kind}: expected a name of small letters that is none of "
                f"{', '.join(LANGUAGES)}, and a module; found {made.name!r}, {made.modules!r}"
            )
        if _taken.setdefault(made.name, made) != made:
            raise ConfigError(f"language {kind}: another one is named {made.name!r} already")


def foreign_language(name: str) -> ForeignLanguage | None:
    """Return the language of that name, if this process knows it."""
    return _taken.get(name)


def known_language(name: str, *, others: Iterable[str] = ()) -> Language:
    """Return the language of that name: kopt's own, one that this process knows, or another.

    Args:
        name: as a user gave it.
        others: that are known where it is asked for, such as those that a run was told of.

    Raises:
        ConfigError: there is none.
    """
    known = dict.fromkeys((*LANGUAGES, *_taken, *others))
    if name not in known:
        raise ConfigError(
            f"unknown language {name!r}; there are: {', '.join(known)} (evaluate.languages=… adds "
            "others)"
        )
    return cast("Language", name)


def told_by_module(module: str) -> Language | None:
    """Return the language that importing a module tells; None where it tells none of these."""
    for language in _taken.values():
        if any(module == name or module.startswith(f"{name}.") for name in language.modules):
            return cast("Language", language.name)
    return None


def taken_languages() -> tuple[Language, ...]:
    """Return the names of those that this process knows."""
    return tuple(cast("Language", name) for name in _taken)


def with_foreign(target: Target, kinds: Iterable[str]) -> Target:
    """Return a target with the languages that run there and whose package is installed.

    They come first: who asks for a language wants it tried.

    Raises:
        ConfigError: as `take_up`.
    """
    own = []
    for kind in kinds:
        take_up([kind])
        language = FOREIGN_LANGUAGES.create(kind)
        if target.device in language.devices and _is_installed(language.modules[0]):
            own.append(cast("Language", language.name))
    return replace(target, languages=(*dict.fromkeys(own), *target.languages))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a parent that is missing; a module without a spec
        return False
