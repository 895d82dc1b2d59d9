"""The values of a kernel in C++: their names, types and addresses, and the statements for them."""

from __future__ import annotations

from dataclasses import dataclass, field

from kopt.actors.rewriter.codegen.cpp.expressions import (
    c_type,
    expression,
    fetched,
    literal,
    stored,
)
from kopt.actors.rewriter.codegen.cpp.kept import kept_bytes, kept_values
from kopt.actors.rewriter.codegen.ir import (
    Const,
    Iota,
    Map,
    Reduce,
    Value,
    View,
    operands,
    postorder,
)
from kopt.actors.rewriter.codegen.program import Index, Program
from kopt.actors.rewriter.codegen.schedule import Schedule

KEEP_BYTES = 1 << 18
"""Most that is kept of one row between passes; it should stay in the second-level cache."""
SHORT_COLS = 256
"""Rows of no more columns are walked by small steps, all written out."""
SHORT_STEPS = 10
"""Such a step has 8 elements where no more steps than these are needed, else 16."""
LEAST_LANES = 32
"""Lanes of a step are given up, down to these, where their rows' values fit to be kept then."""


@dataclass(slots=True)
class Text:
    """Lines with their indentation."""

    lines: list[str] = field(default_factory=list)
    depth: int = 1

    def add(self, *lines: str) -> None:
        """Append lines; braces at their ends set the depth of what follows."""
        for line in lines:
            if line.startswith("}"):
                self.depth -= 1
            self.lines.append(line if line.startswith("#") else "  " * self.depth + line)
            if line.endswith("{"):
                self.depth += 1


class ValueWriter:
    """Knows how each value of a program is spelled; `text` is where statements go."""

    def __init__(
        self,
        program: Program,
        *,
        name: str,
        pointers: dict[Value, str],
        outputs: dict[Value, str],
        schedule: Schedule,
    ) -> None:
        """Prepare to write.

        Args:
            program: the kernel.
            name: of the C++ function.
            pointers: C++ name of the tensor behind each load and each value made elsewhere.
            outputs: C++ name of the tensor behind each output.
            schedule: how to write it.
        """
        self.program = program
        self.name = name
        self.pointers = pointers
        self.outputs = outputs
        self.schedule = schedule
        self.text = Text()
        self.names: dict[Value, str] = {}
        for number, value in enumerate(program.values):
            self.names[value] = f"v{number}"
        self.reductions = [r for step in program.passes for r in step.reductions]
        self.arrayed: set[Value] = set()
        """Values that stand in an array of the step at hand, instead of a variable."""
        self.wide = self._wide()
        stores = [v for row in program.row_stores for v in row]
        self.stored = {v for v in postorder(stores) if isinstance(v, Reduce)}
        """Reductions that a stored value of a row is made of."""
        self.laned = program.lane is not None
        self.is_short = self._is_short()
        self.width = self._width()
        self.kept = self._kept()
        """Values that a later pass fetches from an array of the row."""

    def _wide(self) -> frozenset[Value]:
        """Values of a row that come after a reduction: they are computed in float64.

        It costs nothing there, and the one rounding at the end makes a result as exact as float32
        can hold it.
        """
        found: set[Value] = set()
        for value in self.program.values:
            if value in self.program.reads or not self.is_row(value):
                continue
            if isinstance(value, Reduce) or any(arg in found for arg in operands(value)):
                found.add(value)
        return frozenset(found)

    def kind(self, value: Value) -> str:
        """Return the C++ type in which a value is computed."""
        kind = c_type(value.dtype)
        return "double" if kind == "float" and value in self.wide else kind

    def _is_short(self) -> bool:
        """Whether a row costs less than the bookkeeping of wide steps."""
        program = self.program
        is_row = program.has_reduction and not program.has_scan and not self.laned
        return is_row and len(program.cols) == 1 and program.num_cols <= SHORT_COLS

    def _width(self) -> int:
        """Elements of a step: the schedule's, but no more than there are."""
        program = self.program
        there = program.lane if program.lane is not None else (program.cols or (1,))[-1]
        width = self.schedule.cpu_lanes
        if program.has_scan and not self.laned:
            width = max(width, 256)
        if self.is_short:
            width = min(width, 8 if program.num_cols <= 8 * SHORT_STEPS else 16)
        while width > 8 and width // 2 >= there:
            width //= 2
        return width

    def _kept(self) -> list[Value]:
        """Return what passes keep for later ones; lanes may become fewer for it."""
        program = self.program
        if not self.schedule.cpu_keep or len(program.passes) < 2 or len(program.cols) != 1:
            return []
        found = kept_values(program)
        size = sum(kept_bytes(value) for value in found) * program.num_cols
        if not self.laned:
            return found if size < KEEP_BYTES else []
        width = self.width
        while size * width >= KEEP_BYTES and width > LEAST_LANES:
            width //= 2
        if size * width >= KEEP_BYTES:
            return []
        self.width = width if found else self.width
        return found

    def kept_place(self, value: Value, *, inner: str) -> str:
        """Return the element of a kept value's array, in C++; `inner` is the column."""
        place = f"{inner} * {self.width}L + j" if self.laned else inner
        return f"keep_{self.names[value]}[{place}]"

    def address(self, index: Index, *, inner: str, lane: str) -> str:
        """Return the element number: offset + rows + columns (the last one `inner`) + lane."""
        terms: list[str] = [str(index.offset)] if index.offset else []
        pairs = [(f"r{n}", stride) for n, stride in enumerate(index.rows)]
        names = [f"c{n}" for n in range(len(index.cols) - 1)] + [inner]
        pairs += list(zip(names, index.cols, strict=False))
        pairs.append((lane, index.lane))
        for name, stride in pairs:
            if stride == 1:
                terms.append(name)
            elif stride:
                terms.append(f"{name} * {stride}L")
        return " + ".join(terms) or "0"

    def statement(self, value: Value, *, inner: str, row: bool = False) -> list[str]:
        """Return the statement that computes one value, if it needs one."""
        name = self.names[value]
        target = f"const {self.kind(value)} {name}"
        is_alias = isinstance(value, View | Const) and value not in self.program.reads
        if self.laned and row and not is_alias:
            target = f"a{name}[j]"
        lane = "(lane + j)" if self.laned else "0"
        if value in self.program.reads and not isinstance(value, Iota):
            address = self.address(self.program.reads[value], inner=inner, lane=lane)
            element = f"{self.pointers[value]}[{address}]"
            return [f"{target} = {fetched(value.dtype, element)};"]
        if isinstance(value, Iota):
            address = self.address(self.program.reads[value], inner=inner, lane=lane)
            return [f"{target} = {address};"]
        if isinstance(value, Map):
            wide = value in self.wide
            args = [self.use(arg, wide=wide) for arg in value.args]
            return [f"{target} = {expression(value, args, kind=self.kind(value))};"]
        return []

    def element(self, value: Value) -> str:
        """Return a computed value as an element of its tensor, in C++."""
        return stored(value.dtype, self.use(value))

    def use(self, value: Value, *, wide: bool = False) -> str:
        """Return a computed value as C++; float32 ones as float64 if `wide`."""
        while isinstance(value, View) and value not in self.program.reads:
            value = value.arg
        if isinstance(value, Const):
            return literal(value, wide=wide)
        name = self.names[value]
        if value in self.arrayed:
            name = f"x_{name}[j]"
        elif self.laned and self.is_row(value):
            name = f"a{name}[j]"
        held, wanted = self.kind(value), c_type(value.dtype)
        if wide and wanted == "float":
            wanted = "double"
        return name if held == wanted else f"({wanted}){name}"

    def first_pass(self, value: Value) -> int:
        """Return the first pass that computes a full-size value."""
        return next(n for n, step in enumerate(self.program.passes) if value in step.values)

    def is_row(self, value: Value) -> bool:
        """Whether a value belongs to a row, not to each of its elements."""
        return any(value in row for row in self.program.row_values) or (
            isinstance(value, Reduce) and value not in self.program.reads
        )
