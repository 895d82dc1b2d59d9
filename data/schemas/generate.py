"""Makes the JSON Schemas from the code: `python -m kopt.data.schemas.generate` writes the files.

Types give shapes and nullability; the string under a field becomes its description. Objects stay
open: a field may be added without another schema version (CONTRACTS.md).
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from kopt.candidate import LANGUAGES
from kopt.data import evidence_json, record
from kopt.data.results import ResultRow
from kopt.data.schemas import SCHEMA_NAMES
from kopt.evaluation import CheckJson, ErrorJson, EvalJson
from kopt.events import EVENT_TYPES
from kopt.evidence import Energy, Evidence, KernelEvidence, Roofline, Rule, Timeline
from kopt.finding import Finding
from kopt.foreign_language import LANGUAGE_PATTERN

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_DESCRIBED: tuple[type, ...] = (
    CheckJson,
    Energy,
    ErrorJson,
    EvalJson,
    Evidence,
    Finding,
    KernelEvidence,
    ResultRow,
    Roofline,
    Rule,
    Timeline,
    record.Record,
    *EVENT_TYPES.values(),
)


def generate(name: str) -> dict[str, Any]:
    """Return the schema of that name, as the code has it now.

    Raises:
        KeyError: there is no schema of that name.
    """
    return {"$schema": DRAFT, **_BY_NAME[name]()}


def write_all(folder: Path) -> None:
    """Write every schema as `<name>.json`."""
    for name in SCHEMA_NAMES:
        text = json.dumps(generate(name), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


def _of(kind: type) -> dict[str, Any]:
    schema = TypeAdapter(kind).json_schema()
    docs = {described.__name__: _field_docs(described) for described in _DESCRIBED}
    for title, definition in [(kind.__name__, schema), *schema.get("$defs", {}).items()]:
        for field, doc in docs.get(title, {}).items():
            if field in definition.get("properties", {}):
                definition["properties"][field]["description"] = doc
        _open_languages(definition)
    return schema


def _open_languages(definition: dict[str, Any]) -> None:
    """Let a language be another than kopt's own: packages and users add theirs by name."""
    for field, found in definition.get("properties", {}).items():
        if found.get("enum") == list(LANGUAGES):
            kept = {key: value for key, value in found.items() if key != "enum"}
            definition["properties"][field] = {
                **kept,
                "pattern": LANGUAGE_PATTERN,
                "examples": list(LANGUAGES),
            }


def _evidence() -> dict[str, Any]:
    schema = _of(Evidence)
    schema["properties"] = {
        "schema": {"const": evidence_json.SCHEMA_VERSION, "type": "integer"},
        **schema["properties"],
    }
    schema["required"] = ["schema", *schema["required"]]
    roofline = schema["$defs"]["Roofline"]["properties"]
    roofline["class"] = {**roofline.pop("bottleneck"), "title": "Class"}
    return schema


def _journal() -> dict[str, Any]:
    """One record: the envelope and the fields of an event, told apart by `kind`."""
    docs = _field_docs(record.Record)
    envelope: dict[str, Any] = {
        "schema": {"const": record.SCHEMA_VERSION, "type": "integer"},
        "seq": {"type": "integer", "minimum": 0, "description": docs["seq"]},
        "time_ns": {"type": "integer", "description": docs["time_ns"]},
        "run": {"type": "string", "description": docs["run"]},
        "search": {"type": "string", "description": docs["search"]},
    }
    definitions: dict[str, Any] = {}
    choices = []
    for kind, event_type in EVENT_TYPES.items():
        schema = _of(event_type)
        definitions.update(schema.pop("$defs", {}))
        own = schema.get("properties", {})
        schema["properties"] = {**envelope, "kind": {"const": kind, "type": "string"}, **own}
        schema["required"] = list(schema["properties"])
        definitions[event_type.__name__] = schema
        choices.append({"$ref": f"#/$defs/{event_type.__name__}"})
    return {"title": "JournalRecord", "oneOf": choices, "$defs": definitions}


def _field_docs(kind: type) -> dict[str, str]:
    """Return field to the string under it, read from the class's source."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    if not isinstance(definition, ast.ClassDef):
        return {}
    docs = {}
    for statement, follower in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(follower, ast.Expr)
            and isinstance(follower.value, ast.Constant)
            and isinstance(follower.value.value, str)
        ):
            docs[statement.target.id] = " ".join(follower.value.value.split())
    return docs


_BY_NAME: dict[str, Callable[[], dict[str, Any]]] = {
    "eval": partial(_of, EvalJson),
    "evidence": _evidence,
    "finding": partial(_of, Finding),
    "journal": _journal,
    "results": partial(_of, ResultRow),
}


if __name__ == "__main__":
    write_all(Path(__file__).parent)
