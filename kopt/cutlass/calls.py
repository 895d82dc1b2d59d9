"""The functions over CUTLASS that a model may call: their schemas, and a call read from its JSON.

Untrusted: a model writes the arguments. What it leaves out and may leave out is null.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

MAX_QUERY = 300
"""Characters of a search's query that are read."""
DEFAULT_LINES = 120


class _Call(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Search(_Call):
    """Search the source of CUTLASS and CuTe: a symbol (SM90_64x128x16_F32F16F16_SS), or words."""

    query: str = Field(description="a symbol, or a few words, all of which should be in one line")
    path: str | None = Field(
        description="folder or glob to search in, such as include/cute; null for everything"
    )

    @field_validator("query")
    @classmethod
    def _some(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty")
        return value[:MAX_QUERY]


class ReadFile(_Call):
    """Read lines of a file of CUTLASS."""

    path: str = Field(description="from the root, such as include/cute/layout.hpp")
    start: int = Field(description="first line, from 1")
    lines: int = Field(description="how many lines; 400 at most")


class ListFolder(_Call):
    """List a folder of CUTLASS."""

    path: str = Field(description="from the root; . for the root itself")


class CheckLayout(_Call):
    """Compile tile_to_shape of a shared-memory layout atom: what it is, or why it does not compile.

    Shows the layout and its bytes. Use it before you write a tile's shape.
    """

    layout_atom: str = Field(
        description="a C++ type, such as GMMA::Layout_K_SW128_Atom<half_t> "
        "or Layout<Shape<_8,_64>,Stride<_64,_1>>"
    )
    shape: list[int] = Field(description="extents of the tile, such as [128, 64, 3]")
    element: str | None = Field(description="type of an element, for the bytes; null for half_t")


CutlassCall = Search | ReadFile | ListFolder | CheckLayout

SEARCH = "search_cutlass"
KINDS: dict[str, type[Search | ReadFile | ListFolder | CheckLayout]] = {
    SEARCH: Search,
    "read_cutlass_file": ReadFile,
    "list_cutlass_directory": ListFolder,
    "check_smem_layout": CheckLayout,
}
"""Name of the function to its arguments."""
_DEFAULTS: dict[str, object] = {"path": ".", "start": 1, "lines": DEFAULT_LINES, "element": None}


class BadArguments(Exception):
    """A call that cannot be read; its text is one line for the model."""


def functions() -> list[dict[str, Any]]:
    """Return the offers in the form of a chat completion's `tools`, with strict schemas."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": " ".join((kind.__doc__ or "").split()),
                "strict": True,
                "parameters": strict_schema(kind),
            },
        }
        for name, kind in KINDS.items()
    ]


def strict_schema(kind: type[BaseModel]) -> dict[str, Any]:
    """Return a model's schema as strict function calling wants it: all required, none beside."""
    schema = kind.model_json_schema()
    properties = {
        name: {key: value for key, value in each.items() if key != "title"}
        for name, each in schema["properties"].items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_call(name: str, arguments: str) -> CutlassCall:
    """Return a call from what a model wrote.

    Args:
        name: one of KINDS.
        arguments: JSON, or what a model takes for it.

    Raises:
        BadArguments: no JSON object, or not what the function takes.
    """
    kind = KINDS[name]
    try:
        given = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        raise BadArguments(
            f"The arguments of {name} are no JSON; expected {_expected(kind)}."
        ) from None
    if not isinstance(given, dict):
        raise BadArguments(
            f"The arguments of {name} are no JSON object; expected {_expected(kind)}."
        )
    missing = {
        key: None if kind is Search else value
        for key, value in _DEFAULTS.items()
        if key in kind.model_fields and given.get(key) is None and not _must(kind, key)
    }
    try:
        return kind.model_validate(given | missing)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "they"
        raise BadArguments(
            f"The arguments of {name}: {where[:60]}: {first['msg'][:120]}; "
            f"expected {_expected(kind)}."
        ) from None


def _must(kind: type[BaseModel], key: str) -> bool:
    """Whether a field has no default: the file to read is the model's to name."""
    return kind is ReadFile and key == "path"


def _expected(kind: type[BaseModel]) -> str:
    return "{" + ", ".join(f'"{name}": …' for name in kind.model_fields) + "}"
