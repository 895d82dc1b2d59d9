"""Mined trees on disk: one JSON for each version of a tree, below kopt's cache folder.

They are named by the hash of the headers. A builder that holds a candidate against one first makes
sure that the tree still is what was mined.
"""

from __future__ import annotations

import json
import logging
from functools import lru_cache
from pathlib import Path

from kopt.actors.cutlass.checkout import Checkout
from kopt.cutlass.constraint import SCHEMA, MinedTree, tree_from_json
from kopt.cutlass.mining import mine, tree_key
from kopt.data.atomic import write_bytes
from kopt.errors import StoreError

_LOG = logging.getLogger(__name__)
FOLDER = "cutlass"
MAX_TREES = 8
"""The newest ones that a builder knows."""
MAX_BYTES = 32 << 20
"""Of one file."""


def mined_tree(checkout: Checkout, texts: dict[str, str], *, cache_dir: Path) -> MinedTree:
    """Return what was mined from a tree, mining it now unless that version was mined before.

    Args:
        checkout: the tree.
        texts: of it.
        cache_dir: kopt's cache; where it cannot be written, the next one mines again.
    """
    path = cache_dir / FOLDER / f"{tree_key(texts)}-{SCHEMA}.json"
    known = _read(path)
    if known is not None and known.root == str(checkout.root):
        return known
    tree = mine(texts, root=str(checkout.root), origin=checkout.origin)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, json.dumps(tree.to_json()).encode(), durable=False)
    except (OSError, StoreError) as error:
        _LOG.warning("mined rules of CUTLASS are not kept: %s", error)
    return tree


def known_trees(cache_dir: Path) -> tuple[MinedTree, ...]:
    """Return the trees that were mined, the newest first; none where there are none."""
    try:
        found = [
            (path.stat().st_mtime_ns, path)
            for path in (cache_dir / FOLDER).glob(f"*-{SCHEMA}.json")
        ]
    except OSError:
        return ()
    newest = sorted(found, reverse=True)[:MAX_TREES]
    trees = [_read_once(path, changed_ns) for changed_ns, path in newest]
    return tuple(tree for tree in trees if tree is not None)


def is_as_mined(tree: MinedTree) -> bool:
    """Return whether a tree's headers are what they were when it was mined."""
    checkout = Checkout(root=Path(tree.root), origin=tree.origin)
    return tree_key(checkout.texts()) == tree.key


@lru_cache(maxsize=MAX_TREES)
def _read_once(path: Path, changed_ns: int) -> MinedTree | None:
    del changed_ns
    return _read(path)


def _read(path: Path) -> MinedTree | None:
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        return tree_from_json(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        _LOG.warning("%s cannot be read, and is mined again: %s", path, error)
        return None
