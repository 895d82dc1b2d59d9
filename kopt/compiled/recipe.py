"""How a compiled graph is called: whose its arguments are, and what forward makes of its results.

Plain values, JSON for short: they are written by whoever took the model apart, and read by whoever
puts it together, in another process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Table = Literal["_parameters", "_buffers", "__dict__"]
Path = tuple[int | str, ...]
Spelling = dict[str, Any]
"""A tree: {"result": 0}, {"input": [0]}, {"value": 1.5}, {"tuple": […]}, {"list": […]},
{"dict": [[key, …], …]}; a result with `size`, `stride` and `offset` is a view of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of a compiled graph."""

    kind: Literal["input", "state", "global"]
    """A tensor that forward is given; one of the model's modules; one of the model's file."""
    path: Path = ()
    """Of an input: (0,) is forward's first argument, (1, "mask") an item of its second."""
    module: str = ""
    """Of a state: the module's dotted name, empty for the model itself."""
    table: Table = "_parameters"
    """Of a state: which of the module's tables has it."""
    name: str = ""
    """In the table, or in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A tensor that forward is given, as it was when the model was compiled."""

    path: Path
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    """`float32`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A tensor that the compiler keeps beside its text."""

    name: str
    size: tuple[int, ...]
    dtype: str
    data: str
    """Its elements in order, base64 of their bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that a stitched file needs besides functions: one compiled graph, and how to call it."""

    source: str
    """Inductor's output module."""
    arguments: tuple[Argument, ...]
    given: tuple[Given, ...]
    plain: tuple[tuple[Path, Any], ...]
    """What forward is given that is no tensor: part of the compiled code."""
    constants: tuple[Constant, ...]
    result: Spelling
    is_training: bool
    device: str
    """`cpu` or `cuda`."""


def spell(tree: Spelling, *, results: str, inputs: str) -> str:
    """Return a spelling as a Python expression.

    Args:
        tree: of forward's result.
        results: name of the tuple of the graph's results.
        inputs: name of the tuple of forward's arguments.
    """
    if "input" in tree:
        return inputs + "".join(f"[{key!r}]" for key in tree["input"])
    if "result" in tree:
        text = f"{results}[{tree['result']}]"
        if "size" not in tree:
            return text
        return f"torch.as_strided({text}, {tree['size']}, {tree['stride']}, {tree['offset']})"
    if "dict" in tree:
        parts = (f"{k!r}: {spell(v, results=results, inputs=inputs)}" for k, v in tree["dict"])
        return "{" + ", ".join(parts) + "}"
    if "value" in tree:
        return repr(tree["value"])
    kind = "list" if "list" in tree else "tuple"
    inside = "".join(f"{spell(v, results=results, inputs=inputs)}, " for v in tree[kind])
    return f"[{inside}]" if kind == "list" else f"({inside})"
