"""JSON Schemas of what kopt writes: generated from the code, committed, shipped in the package."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

SCHEMA_NAMES = ("eval", "evidence", "finding", "journal", "results")
"""`eval`: `kopt eval --json`; `journal`: one line; `results`: one row of results.parquet."""


def load(name: str) -> dict[str, Any]:
    """Return a JSON Schema (draft 2020-12).

    Args:
        name: one of SCHEMA_NAMES.

    Raises:
        KeyError: there is no schema of that name.
    """
    if name not in SCHEMA_NAMES:
        raise KeyError(f"no schema {name!r}; there are: {', '.join(SCHEMA_NAMES)}")
    text = files("kopt.data.schemas").joinpath(f"{name}.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
