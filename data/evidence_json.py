"""Evidence as JSON (`kopt profile --json`, `kopt findings FILE`), and back.

The JSON form is the dataclass's, with `schema` added and the roofline's `bottleneck` named `class`
(CONTRACTS.md), a word that Python keeps for itself. Missing is null, never 0; so is what is not
finite.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from kopt.errors import ConfigError
from kopt.evidence import Evidence

SCHEMA_VERSION = 1
MAX_FAULTS = 8
"""Lines about what is wrong with a record."""

_ADAPTER = TypeAdapter(Evidence)


def evidence_to_json(evidence: Evidence) -> dict[str, Any]:
    """Return the evidence as plain JSON values; `evidence_from_json` gives it back."""
    fields = cast("dict[str, Any]", _plain(asdict(evidence)))
    roofline = fields["roofline"]
    if roofline is not None:
        roofline["class"] = roofline.pop("bottleneck")
    return {"schema": SCHEMA_VERSION, **fields}


def evidence_from_json(record: object) -> Evidence:
    """Return the evidence of a parsed JSON value, which may come from anywhere.

    A field that is left out counts as null, and so does a number that is not finite; a field that
    is not known is ignored.

    Raises:
        ConfigError: it is no evidence; one line for each thing that is wrong.
    """
    if not isinstance(record, dict):
        raise ConfigError(f"evidence: expected a JSON object, found {type(record).__name__}")
    if record.get("schema") != SCHEMA_VERSION:
        raise ConfigError(
            f"evidence: expected schema {SCHEMA_VERSION}, found {record.get('schema')!r}"
        )
    fields = cast("dict[str, Any]", _plain(record))
    roofline = fields.get("roofline")
    if isinstance(roofline, dict):
        fields["roofline"] = {
            "bottleneck" if key == "class" else key: value for key, value in roofline.items()
        }
    try:
        return _ADAPTER.validate_python(fields)
    except ValidationError as error:
        lines = [
            f"evidence {'.'.join(str(step) for step in fault['loc'])}: {fault['msg']} "
            f"(found {fault['input']!r:.60})"
            for fault in error.errors()
        ]
        if len(lines) > MAX_FAULTS:
            lines = [*lines[: MAX_FAULTS - 1], f"evidence: {len(lines) - MAX_FAULTS + 1} more"]
        raise ConfigError("\n".join(lines)) from None


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
