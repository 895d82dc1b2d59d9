"""The statements of a Triton kernel: indices, loads, maps, reductions over a tile, stores.

Values of a row have shape [rows, 1], those of all elements [rows, columns]; in an element-wise
kernel everything has the shape of the one block.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch

from kopt.actors.rewriter.codegen.gpu.expressions import expression, held_type, literal
from kopt.actors.rewriter.codegen.gpu.tiles import Tile
from kopt.actors.rewriter.codegen.ir import (
    Const,
    Iota,
    Load,
    Map,
    Reduce,
    Scan,
    Unsupported,
    Value,
    View,
    operands,
)
from kopt.actors.rewriter.codegen.program import Index, Program

FEW_ROWS = 128
"""Kernels of at most this many rows join sums in float64: it costs nothing there, and a result
that stands alone (a loss) comes out as exact as float32 can hold it."""
MOST_ELEMENTS = 1 << 31
"""From here on element numbers need 64 bits."""
LIMITS = {
    ("max", "tl.int32"): "-2147483648",
    ("min", "tl.int32"): "2147483647",
    ("max", "tl.int64"): "-9223372036854775808",
    ("min", "tl.int64"): "9223372036854775807",
}


class TileWriter:
    """Writes statements; knows which values the code written so far has computed."""

    def __init__(
        self,
        program: Program,
        *,
        prefix: str,
        pointers: dict[Value, str],
        outputs: dict[Value, str],
        tile: Tile,
        fast: bool,
    ) -> None:
        """Prepare to write.

        Args:
            program: the kernel.
            prefix: of the names of jitted helpers.
            pointers: name of the tensor behind each load and each value made elsewhere.
            outputs: name of the tensor behind each output.
            tile: how the kernel is cut.
            fast: whether hardware approximations may serve.
        """
        self.program = program
        self.prefix = prefix
        self.pointers = pointers
        self.outputs = outputs
        self.tile = tile
        self.fast = fast
        self.needs: set[str] = set()
        """Helpers that the text calls, and "libdevice"."""
        self.names = {value: f"v{number}" for number, value in enumerate(program.values)}
        self.flat = not program.has_reduction and not program.has_scan
        self.of_row = {v for row in program.row_values for v in row}
        self.of_row.update(r for step in program.passes for r in step.reductions)
        self.wide = self._wide()
        sizes = [prod(v.shape) for v in program.values]
        self.large = max([program.num_rows * program.num_cols, *sizes]) >= MOST_ELEMENTS
        self.lines: list[str] = []
        self.depth = 1
        self.done: set[Value] = set()
        self.row_mask = ""
        self.col_mask = ""

    def _wide(self) -> frozenset[Value]:
        if self.program.num_rows > FEW_ROWS and self.tile.chunks == 1:
            return frozenset()
        found: set[Value] = set()
        for value in self.program.values:
            if value not in self.of_row or not value.dtype.is_floating_point:
                continue
            made_here = value not in self.program.reads
            if (isinstance(value, Reduce) and made_here) or (
                made_here and any(arg in found for arg in operands(value))
            ):
                found.add(value)
        return frozenset(found)

    def add(self, *lines: str) -> None:
        """Append lines at the present depth."""
        self.lines += ["    " * self.depth + line for line in lines]

    # Indices.

    def program_id(self, axis: int) -> str:
        """Return the number of this program along an axis of the grid."""
        return f"tl.program_id({axis})" + (".to(tl.int64)" if self.large else "")

    def add_rows(self) -> None:
        """Write the row indices of the tile."""
        program, rows = self.program, self.tile.rows
        self.add(f"x = {self.program_id(0)} * {rows} + tl.arange(0, {rows})[:, None]")
        self.row_mask = f"(x < {program.num_rows})" if program.num_rows % rows else ""
        names = [f"r{n}" for n in range(len(program.rows))]
        sizes = list(program.rows)
        if program.lane is not None:
            names.append("lane")
            sizes.append(program.lane)
        self._decode("x", names, sizes)

    def add_cols(self, start: str, *, high: str | None) -> None:
        """Write the column indices of a step; `high` bounds them, None if all exist."""
        self.add(f"c = {start}tl.arange(0, {self.tile.cols})[None, :]")
        self.col_mask = f"(c < {high})" if high is not None else ""
        names = [f"c{n}" for n in range(len(self.program.cols))]
        self._decode("c", names, self.program.cols)

    def add_flat(self) -> None:
        """Write the indices of an element-wise block."""
        program, block = self.program, self.tile.cols
        sizes = [*program.rows, *program.cols]
        self.add(f"i = {self.program_id(0)} * {block} + tl.arange(0, {block})")
        total = prod(sizes)
        self.row_mask = f"(i < {total})" if total % block else ""
        names = [f"r{n}" for n in range(len(program.rows))]
        names += [f"c{n}" for n in range(len(program.cols))]
        self._decode("i", names, sizes)

    def _decode(self, index: str, names: Sequence[str], sizes: Sequence[int]) -> None:
        below = 1
        for place in reversed(range(len(sizes))):
            turn = f"{index} // {below}" if below > 1 else index
            self.add(f"{names[place]} = {turn}{f' % {sizes[place]}' if place else ''}")
            below *= sizes[place]

    def _address(self, index: Index) -> str:
        terms = [str(index.offset)] if index.offset else []
        pairs = [(f"r{n}", s) for n, s in enumerate(index.rows)]
        pairs += [(f"c{n}", s) for n, s in enumerate(index.cols)]
        pairs.append(("lane", index.lane))
        terms += [name if s == 1 else f"{name} * {s}" for name, s in pairs if s]
        return " + ".join(terms)

    def _mask(self, index: Index) -> str:
        if self.flat:
            return self.row_mask
        masks = [self.row_mask] if any(index.rows) or index.lane else []
        masks += [self.col_mask] if any(index.cols) else []
        return " & ".join(mask for mask in masks if mask)

    # Values.

    def compute(self, value: Value) -> None:
        """Write the statement of a value, if it needs one and has not been computed."""
        if value in self.done:
            return
        name = self.names[value]
        if value in self.program.reads:
            self._read(value, name)
        elif isinstance(value, Map):
            self.add(f"{name} = {self._map(value)}")
        elif isinstance(value, Scan):
            self._scan(value, name)
        else:
            return
        self.done.add(value)

    def _read(self, value: Value, name: str) -> None:
        index = self.program.reads[value]
        address = self._address(index) or "0"
        if isinstance(value, Iota):
            self.add(f"{name} = {address}")
            return
        mask, fill = self._mask(index), "0"
        if value in self.program.bounds:
            mask = " & ".join([*([mask] if mask else []), *self._checks(value)])
            assert isinstance(value, Load)
            fill = literal(Const(number=value.fill, shape=(), dtype=value.dtype))
        guard = f", mask={mask}, other={fill}" if mask and address != "0" else ""
        cast = ""
        if held_type(value.dtype) == "tl.float32" and value.dtype.itemsize == 2:
            cast = ".to(tl.float32)"
        self.add(f"{name} = tl.load({self.pointers[value]} + ({address}){guard}){cast}")

    def _checks(self, value: Value) -> list[str]:
        """Return the conditions under which a load that may reach past its tensor reads."""
        found = []
        for index, low, high in self.program.bounds[value]:
            place = self._address(index)
            found.append(f"({place} >= {low}) & ({place} < {high})")
        return found

    def _map(self, value: Map) -> str:
        wide = value in self.wide
        args = [self.use(arg, wide=wide) for arg in value.args]
        if all(isinstance(arg, Const) for arg in value.args):
            shape = "[1]" if self.flat else "[1, 1]"
            kinds = [held_type(arg.dtype) for arg in value.args]
            args = [f"tl.full({shape}, {a}, {k})" for a, k in zip(args, kinds, strict=True)]
        text, needed = expression(value, args, prefix=self.prefix, wide=wide, fast=self.fast)
        if needed is not None:
            self.needs.add(needed)
        return text

    def use(self, value: Value, *, wide: bool = False) -> str:
        """Return a computed value; those in float64 narrowed unless `wide`."""
        while isinstance(value, View) and value not in self.program.reads:
            value = value.arg
        if isinstance(value, Const):
            return literal(value)
        name = self.names[value]
        if value in self.wide and not wide and value.dtype != torch.float64:
            return f"{name}.to(tl.float32)"
        return name

    def term(self, value: Value, neutral: str, kind: str) -> str:
        """Return a value over the whole tile, with the neutral number outside of the columns."""
        shape = f"[{self.tile.rows}, {self.tile.cols}]"
        text = self.use(value)
        base = value
        while isinstance(base, View):
            base = base.arg
        if isinstance(base, Const):
            text = f"tl.full({shape}, {text}, {kind})"
        if self.col_mask:
            text = f"tl.where({self.col_mask}, {text}, {neutral})"
        return f"tl.broadcast_to({text}, {shape})"

    def neutral(self, reduction: Reduce) -> str:
        """Return the number that changes nothing in a reduction."""
        floating = reduction.dtype.is_floating_point
        if reduction.kind in ("sum", "prod"):
            number = "0" if reduction.kind == "sum" else "1"
            return number + ".0" if floating else number
        if floating:
            return '-float("inf")' if reduction.kind == "max" else 'float("inf")'
        key = (reduction.kind, held_type(reduction.dtype))
        if key not in LIMITS:
            raise Unsupported(f"an extreme of {reduction.dtype}")
        return LIMITS[key]

    def join(self, reduction: Reduce, left: str, right: str) -> str:
        """Return two partial results joined, element by element."""
        if reduction.kind in ("sum", "prod"):
            return f"{left} {'+' if reduction.kind == 'sum' else '*'} {right}"
        self.needs.add(reduction.kind)
        return f"_{self.prefix}_{reduction.kind}({left}, {right})"

    def across(self, reduction: Reduce, tile: str) -> str:
        """Return a tile reduced along its columns, with shape [rows, 1]."""
        if reduction in self.wide and reduction.kind in ("sum", "prod"):
            tile = f"{tile}.to(tl.float64)"
        if reduction.kind == "sum":
            return f"tl.sum({tile}, axis=1)[:, None]"
        helper = "mul" if reduction.kind == "prod" else reduction.kind
        self.needs.add(helper)
        return f"tl.reduce({tile}, 1, _{self.prefix}_{helper})[:, None]"

    def _scan(self, scan: Scan, name: str) -> None:
        start = "0.0" if scan.kind == "sum" else "1.0"
        term = self.term(scan.arg, start, held_type(scan.dtype))
        function = "tl.cumsum" if scan.kind == "sum" else "tl.cumprod"
        self.add(f"{name} = {function}({term}, axis=1)")
        if self.tile.persistent:
            return
        sign = "+" if scan.kind == "sum" else "*"
        kind = held_type(scan.dtype)
        carry = f"carry_{name}"
        self.add(f"run = {carry} {sign} {name}")
        if scan.kind == "sum":
            whole = f"tl.sum({term}, axis=1)[:, None]"
        else:
            self.needs.add("mul")
            whole = f"tl.reduce({term}, 1, _{self.prefix}_mul)[:, None]"
        self.add(f"{carry} = {carry} {sign} {whole}", f"{name} = run.to({kind})")

    def store(self, value: Value) -> None:
        """Write an output."""
        index = self.program.writes[value]
        address = self._address(index)
        anchor = "i" if self.flat else "x"
        mask = self._mask(index)
        if not address or (not self.flat and value in self.of_row and not any(index.rows)):
            address = f"{address or '0'} + {anchor} * 0"
            mask = self.row_mask
        held = self.use(value, wide=True)
        guard = f", mask={mask}" if mask else ""
        self.add(f"tl.store({self.outputs[value]} + ({address}), {held}{guard})")
