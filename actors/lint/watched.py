"""In the child: the reference's Model, watched operation by operation while it runs.

A call of a watched model gives a JSON text in the place of its outputs: which operations the
outputs do not depend on, and which give back what they were given. Dependence is followed by
storage, below autograd and composite operations, so Python's control flow and in-place writes are
seen as they happened. Kernels that torch does not dispatch (Triton, an extension's own functions)
are not seen; memory that nothing was seen to fill says so.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

TAIL = """

from kopt.actors.lint.watched import watch_calls as _kopt_watch_calls
_kopt_watch_calls(Model)
"""
"""What is put below a problem's source, so that its lines keep their numbers."""

MAX_ROWS = 100
"""Rows of each kind in a report: messages are bounded."""
MAX_INDICES = 100
ROUNDING = 4.0
"""An operation changes nothing where it moves no value by more than this many eps of the
largest."""
BLANK = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_")
"""Operations that give memory with nothing in it."""
COPIES = (
    "_to_copy",
    "alias",
    "clone",
    "contiguous",
    "copy",
    "copy_",
    "detach",
    "lift_fresh",
    "lift_fresh_copy",
    "repeat",
)
"""Operations that are asked for another place or form, not for other values."""


@dataclass(slots=True)
class _Node:
    """One operation that ran."""

    line: int
    """In the problem's source; 0 where none of its frames led here."""
    name: str
    reads: set[int]
    """Numbers of the operations whose results it read."""
    elements: int
    """Elements read and written."""
    is_effect: bool
    """Its result left the tensors (a number in Python), or it wrote to weights or inputs."""
    changes_nothing: bool


def watch_calls(model: type[nn.Module]) -> None:
    """Have a model's calls give a report in the place of their outputs.

    The class itself is changed: its methods may name it (`super(Model, self)`).
    """
    path = getattr(sys.modules.get(model.__module__), "__file__", None) or "<none>"
    original = model.forward

    def forward(self: nn.Module, *arguments: Any, **named: Any) -> str:  # noqa: ANN401 - any model's
        kept = [*self.parameters(), *self.buffers(), *tree_leaves((arguments, named))]
        watch = Watch(path, kept=[each for each in kept if isinstance(each, torch.Tensor)])
        with watch:
            outputs = original(self, *arguments, **named)
        return json.dumps(watch.report(outputs))

    model.forward = forward


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes every operation that is dispatched while it is entered."""

    def __init__(self, path: str, *, kept: list[torch.Tensor]) -> None:
        """Begin with nothing seen.

        Args:
            path: of the source whose lines are told.
            kept: tensors that outlive the call: writing to them is an effect.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self._path = str(Path(path))
        self._nodes: list[_Node] = []
        self._writers: dict[int, set[int]] = defaultdict(set)
        self._blank: set[int] = set()
        self._kept = {_storage(tensor) for tensor in kept}
        self._is_opaque = False

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - an OpOverload
        types: Any,  # noqa: ANN401 - as torch declares it
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operation gives
        """Run an operation and note it."""
        named = kwargs or {}
        written = _written(func, args, named)
        given = [leaf for leaf in tree_leaves((args, named)) if isinstance(leaf, torch.Tensor)]
        before = [leaf.clone() if any(leaf is w for w in written) else leaf for leaf in given]
        result = func(*args, **named)
        made = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        self._note(func.overloadpacket.__name__, given, before, written, made)
        return result

    def _note(
        self,
        name: str,
        given: list[torch.Tensor],
        before: list[torch.Tensor],
        written: list[torch.Tensor],
        made: list[torch.Tensor],
    ) -> None:
        sources = {_storage(tensor) for tensor in given}
        targets = {_storage(tensor) for tensor in written}
        fresh = {_storage(tensor) for tensor in made} - sources
        if made and not fresh and not targets:
            return  # a view
        if name in BLANK:
            for key in fresh:
                self._writers[key] = set()
            self._blank |= fresh
            return
        if any(t.numel() and _storage(t) in self._blank - targets for t in given):
            self._is_opaque = True
        number = len(self._nodes)
        reads: set[int] = set().union(*(self._writers[key] for key in sources))
        self._nodes.append(
            _Node(
                line=self._line(),
                name=name,
                reads=reads,
                elements=sum(tensor.numel() for tensor in (*given, *made)),
                is_effect=(bool(given) and not made) or bool(targets & self._kept),
                changes_nothing=name not in COPIES and _gives_back(made, before),
            )
        )
        for key in fresh:
            self._writers[key] = {number}
        for key in targets:
            self._writers[key] = self._writers[key] | {number}
        self._blank -= fresh | targets

    def _line(self) -> int:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename == self._path:
                return frame.f_lineno
            frame = frame.f_back
        return 0

    def report(self, outputs: object) -> dict[str, Any]:
        """Return what was seen of a call that gave these outputs."""
        leaves = [leaf for leaf in tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]
        keys = {_storage(leaf) for leaf in leaves}
        self._is_opaque |= any(_storage(leaf) in self._blank for leaf in leaves if leaf.numel())
        live = self._live(keys)
        total = sum(node.elements for node in self._nodes) or 1
        rows: dict[tuple[int, str], list[int]] = defaultdict(list)
        for number, node in enumerate(self._nodes):
            rows[node.line, node.name].append(number)
        dead, idle = [], []
        for (line, name), numbers in rows.items():
            unused = [n for n in numbers if n not in live]
            if unused:
                share = sum(self._nodes[n].elements for n in unused) / total
                dead.append([line, name, len(unused), len(numbers), share])
            still = [at for at, n in enumerate(numbers) if self._nodes[n].changes_nothing]
            if still:
                idle.append([line, name, still[:MAX_INDICES], len(numbers)])
        return {"opaque": self._is_opaque, "dead": dead[:MAX_ROWS], "idle": idle[:MAX_ROWS]}

    def _live(self, keys: set[int]) -> set[int]:
        waiting = [n for key in keys for n in self._writers[key]]
        waiting += [n for n, node in enumerate(self._nodes) if node.is_effect]
        live: set[int] = set()
        while waiting:
            number = waiting.pop()
            if number not in live:
                live.add(number)
                waiting.extend(self._nodes[number].reads)
        return live


def _storage(tensor: torch.Tensor) -> int:
    """Return what tells a tensor's memory from others; a number of its own where it has none."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):  # sparse and functional tensors have no storage
        return -id(tensor)


def _written(func: Any, args: tuple[Any, ...], named: dict[str, Any]) -> list[torch.Tensor]:  # noqa: ANN401
    """Return the arguments that an operation writes to."""
    schema = func._schema
    if not schema.is_mutable:
        return []
    values = {a.name: v for a, v in zip(schema.arguments, args, strict=False)} | named
    marked = [
        values.get(a.name)
        for a in schema.arguments
        if a.alias_info is not None and a.alias_info.is_write
    ]
    return [leaf for leaf in tree_leaves(marked) if isinstance(leaf, torch.Tensor)]


def _gives_back(made: list[torch.Tensor], given: list[torch.Tensor]) -> bool:
    """Return whether the first result has the values of an operand, up to rounding."""
    if not made or made[0].numel() < 2:
        return False
    out = made[0]
    for each in given:
        if each.dtype != out.dtype or each.numel() != out.numel():
            continue
        left, right = out.reshape(-1), each.reshape(-1)
        if torch.equal(left, right):
            return True
        if out.is_floating_point() and bool(torch.isfinite(left).all()):
            room = ROUNDING * torch.finfo(out.dtype).eps * left.abs().max()
            if bool(((left - right).abs() <= room).all()):
                return True
    return False
