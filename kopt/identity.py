"""Content ids: one sha256 over everything that changes behaviour, and over nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)
"""One for all: a journal writes half a million of them, and `json.dumps` makes one each time."""


def canonical_json(value: object) -> str:
    """Return the one JSON text of a plain value: sorted keys, no spaces, UTF-8, no NaN.

    Raises:
        ValueError: a float is not finite.
        TypeError: the value holds something JSON has no form for.
    """
    return _CANONICAL.encode(value)


def content_id(domain: str, version: int, fields: Mapping[str, object]) -> str:
    """Return the sha256 (64 hex digits) of a domain tag, a version and the fields.

    Args:
        domain: what is identified ("candidate"); keeps equal fields of other kinds apart.
        version: of the list of fields; raised whenever a field is added.
        fields: plain JSON values, every one of which changes behaviour.

    Returns:
        64 lower-case hex digits, equal on every machine.
    """
    text = canonical_json({"domain": domain, "version": version, "fields": dict(fields)})
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def text_id(text: str) -> str:
    """Return the sha256 (64 hex digits) of a text's UTF-8 bytes; names artefacts."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def derived_seed(*parts: object) -> int:
    """Return a seed in [0, 2**63) that depends on every part, and on nothing else.

    A node samples by (run seed, node), never by draw order, so that answers that arrive in
    another order do not change what it samples.
    """
    text = canonical_json([str(part) for part in parts])
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> 1
