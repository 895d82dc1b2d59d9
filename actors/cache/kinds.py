"""The kinds of caches of a node: where each lies below KOPT_CACHE_DIR, and how much it may hold.

`kopt cache --max-gib` writes a bound for all of them together into the cache folder; each kind has
its share of it. Imports nothing heavy: the command shows caches without torch.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kopt.actors.cache.locks import share
from kopt.actors.cache.store import Store

_LOG = logging.getLogger(__name__)
_BOUND_FILE = "bound.json"
USERS_FILE = ".users"
"""Every process that uses the cache shares this lock: nothing is cleared under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of entry."""

    name: str
    """Also its folder's."""
    holds: str
    """What an entry is, for a person."""
    max_bytes: int
    """Kept unless a bound was set."""
    least_free_bytes: int
    """Left on the disk for others: what an entry may take while it is made, with room to spare."""
    in_use_s: float = 0.0
    """An entry asked for within this time stays: somebody may be about to open its files."""


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            name="build",
            holds="what candidates compiled to",
            max_bytes=8 << 30,
            least_free_bytes=256 << 20,
            in_use_s=1_800.0,
        ),
        Kind(
            name="verdict",
            holds="what became of candidates",
            max_bytes=1 << 30,
            least_free_bytes=16 << 20,
        ),
        Kind(
            name="baseline",
            holds="times of references",
            max_bytes=64 << 20,
            least_free_bytes=16 << 20,
        ),
        Kind(
            name="reference",
            holds="outputs of references",
            max_bytes=4 << 30,
            least_free_bytes=256 << 20,
        ),
        Kind(
            name="api",
            holds="signatures of packages",
            max_bytes=4 << 20,
            least_free_bytes=16 << 20,
        ),
    )
}
TOTAL_BYTES = sum(kind.max_bytes for kind in KINDS.values())
_users: dict[Path, IO[str] | None] = {}


def open_store(cache_dir: Path, kind: str) -> Store:
    """Return a kind's store, bounded as it was set; until this process ends it counts as used.

    Args:
        cache_dir: kopt's cache on this node; need not exist.
        kind: a key of KINDS.
    """
    if _users.get(cache_dir) is None:
        with suppress(OSError):
            cache_dir.mkdir(parents=True, exist_ok=True)
        _users[cache_dir] = share(cache_dir / USERS_FILE)
    return see_store(cache_dir, kind)


def see_store(cache_dir: Path, kind: str) -> Store:
    """Return a kind's store for a look at it, or to clear it."""
    about = KINDS[kind]
    return Store(
        root=cache_dir / kind,
        kind=kind,
        max_bytes=kind_bound(cache_dir, kind),
        least_free_bytes=about.least_free_bytes,
        in_use_s=about.in_use_s,
    )


def kind_bound(cache_dir: Path, kind: str) -> int:
    """Return the bytes that a kind may hold: its own, or its share of the bound that was set."""
    total = total_bound(cache_dir)
    own = KINDS[kind].max_bytes
    return own if total is None else total * own // TOTAL_BYTES


def total_bound(cache_dir: Path) -> int | None:
    """Return the bound of all kinds together in bytes; None where none was set."""
    path = cache_dir / _BOUND_FILE
    try:
        return max(0, int(json.loads(path.read_text(encoding="utf-8"))["max_bytes"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        _LOG.warning("%s cannot be read: the caches have their usual bounds", path)
        return None


def set_total_bound(cache_dir: Path, max_bytes: int) -> None:
    """Keep a bound of all kinds together, for every process that opens a store from now on.

    Raises:
        OSError: the cache folder cannot be written.
    """
    cache_dir.mkdir(parents=True, exist_ok=True)
    aside = cache_dir / f".{_BOUND_FILE}.{os.getpid()}"
    aside.write_text(json.dumps({"max_bytes": max_bytes}), encoding="utf-8")
    os.replace(aside, cache_dir / _BOUND_FILE)
