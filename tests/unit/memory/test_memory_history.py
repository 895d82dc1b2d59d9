"""History: the lineage of a version and its siblings, bounded."""

from __future__ import annotations

from kopt.memory.history import MAX_LINEAGE, MAX_SIBLINGS, History, history_of
from kopt.memory.tried import Tried


def made(name: str, parent: str | None) -> Tried:
    return Tried(
        candidate=name,
        parent=parent,
        expansion=0,
        strategy="",
        language="cpp",
        kind="correct",
        reason="",
    )


def chain(length: int) -> dict[str, Tried]:
    return {f"v{n}": made(f"v{n}", f"v{n - 1}" if n else None) for n in range(length)}


def test_the_lineage_goes_from_the_eldest_to_the_parent_of_the_version() -> None:
    history = history_of([], by_candidate=chain(4), parent="v3")
    assert [each.candidate for each in history.lineage] == ["v0", "v1", "v2"]
    assert history_of([], by_candidate=chain(4), parent="v0") == History()
    assert history_of([], by_candidate={}, parent=None) == History()


def test_a_long_lineage_keeps_its_nearest_and_counts_the_rest() -> None:
    history = history_of([], by_candidate=chain(MAX_LINEAGE + 4), parent=f"v{MAX_LINEAGE + 3}")
    assert history.older == 3
    assert history.lineage[0].candidate == "v3"


def test_siblings_keep_their_latest_and_count_the_rest() -> None:
    siblings = [made(f"s{n}", None) for n in range(MAX_SIBLINGS + 5)]
    history = history_of(siblings, by_candidate={}, parent=None)
    assert (history.siblings, history.earlier) == (tuple(siblings[5:]), 5)


def test_a_version_that_was_written_again_from_its_own_child_ends_the_lineage() -> None:
    ring = {"a": made("a", "b"), "b": made("b", "a")}
    assert [each.candidate for each in history_of([], by_candidate=ring, parent="a").lineage] == [
        "b"
    ]
