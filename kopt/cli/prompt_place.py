"""What NODE of `kopt prompt` names: a node, a candidate, or an expansion of one of the searches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kopt.data.fold import ExpansionState, RunState, SearchState
from kopt.errors import ConfigError

_CANDIDATE = re.compile(r"[0-9a-f]{4,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An expansion of a run, and the node of it that was asked for."""

    search: str
    expansion: ExpansionState
    node: int | None = None
    candidate: str | None = None

    @property
    def expansion_name(self) -> str | None:
        """How the expansion is named; None for a node of it."""
        return f"@{self.expansion.asked.expansion}" if self.candidate is None else None

    @property
    def node_name(self) -> str | None:
        """How the node is named; None where there is none."""
        return None if self.node is None else str(self.node)


def find(state: RunState, words: str, *, search: str | None) -> Place:
    """Return the place that a user's words name.

    A number is a node's before it is the start of an id; of a candidate that was written several
    times, the first time counts.

    Args:
        state: of the run.
        words: a node, the first digits of a candidate's id, or @expansion.
        search: its name; None where it may be any.

    Raises:
        ConfigError: there is none, or several are meant.
    """
    if search is not None and search not in state.searches:
        raise ConfigError(f"no search {search!r}; there are: {', '.join(state.searches)}")
    places = [
        place
        for name in ([search] if search is not None else state.searches)
        for place in _places(name, state.searches[name])
    ]
    counted = [place for place in places if words in (place.expansion_name, place.node_name)]
    if len({place.search for place in counted}) > 1:
        found = ", ".join(dict.fromkeys(place.search for place in counted))
        raise ConfigError(f"{words!r} is in several searches; add --search NAME, one of: {found}")
    if counted:
        return counted[0]
    named = [place for place in places if place.candidate and place.candidate.startswith(words)]
    if not named or not _CANDIDATE.fullmatch(words):
        within = f" in {search}" if search is not None else ""
        hint = "; node 0 is ROOT, which nobody wrote" if words == "0" else ""
        raise ConfigError(f"no node, candidate or @expansion {words!r}{within}{hint}")
    ids = list(dict.fromkeys(place.candidate for place in named))
    if len(ids) > 1:
        found = ", ".join(str(each)[:12] for each in ids[:4])
        raise ConfigError(f"{words!r} begins {len(ids)} ids ({found}, …); give more digits")
    return named[0]


def _places(name: str, search: SearchState) -> Iterator[Place]:
    """Yield every place of a search: each expansion, and each of its candidates."""
    for expansion in search.expansions.values():
        yield Place(search=name, expansion=expansion)
        for made in expansion.candidates.values():
            told = expansion.told.get(made.index)
            yield Place(
                search=name,
                expansion=expansion,
                node=told.node if told is not None else None,
                candidate=made.candidate,
            )
