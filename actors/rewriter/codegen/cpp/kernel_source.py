"""A program as a C++ function.

A thread takes one row at a time (or a chunk of a long row). Inside, `j` counts the elements of a
step: consecutive columns, or lanes. Every reduction has one partial result for each `j`, so that
the loop over `j` becomes vector code and the result depends neither on the number of threads nor
on the width of the machine's vectors. Sums go on to float64 after a few hundred steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from kopt.actors.rewriter.codegen.cpp.expressions import c_type, expression, literal
from kopt.actors.rewriter.codegen.cpp.totals import JOIN, neutral, total_type
from kopt.actors.rewriter.codegen.cpp.walk import WalkWriter
from kopt.actors.rewriter.codegen.ir import (
    Const,
    Iota,
    Map,
    Reduce,
    Scan,
    Value,
    View,
    operands,
    postorder,
)
from kopt.actors.rewriter.codegen.program import Index, Pass, Program
from kopt.actors.rewriter.codegen.schedule import Schedule

SPLIT_ROWS = 16
"""Fewer rows than this do not keep the threads busy: their columns are shared out."""
SPLIT_COLS = 65536
"""Shorter rows are not shared out."""
KEEP_BYTES = 1 << 18
"""Most that is kept of one row between passes; it should stay in the second-level cache."""
PARALLEL_ELEMENTS = 16384
"""Smaller kernels run on the calling thread."""
COSTLY = frozenset(
    [
        "exp",
        "expm1",
        "log",
        "log1p",
        "tanh",
        "erf",
        "pow",
        "sin",
        "cos",
        "sigmoid",
        "log2",
        "log10",
        "atan",
    ]
)


@dataclass(slots=True)
class _Text:
    """Lines with their indentation."""

    lines: list[str] = field(default_factory=list)
    depth: int = 1

    def add(self, *lines: str) -> None:
        for line in lines:
            if line.startswith("}"):
                self.depth -= 1
            self.lines.append(line if line.startswith("#") else "  " * self.depth + line)
            if line.endswith("{"):
                self.depth += 1


class KernelWriter:
    """Writes one program; `pointers` names the memory of what it reads and writes."""

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
        self.text = _Text()
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
        self.width = self._width()
        self.kept = self._kept()
        self.split = (
            not self.laned
            and not program.has_scan
            and program.num_rows < SPLIT_ROWS
            and program.num_cols >= SPLIT_COLS
        )

    def _wide(self) -> frozenset[Value]:
        """Values of a row that come after a reduction: they are computed in float64.

        It costs nothing there, and the one rounding at the end makes a result as exact as float32
        can hold it.
        """
        found: set[Value] = set()
        for value in self.program.values:
            if value in self.program.reads or not self._is_row(value):
                continue
            if isinstance(value, Reduce) or any(arg in found for arg in operands(value)):
                found.add(value)
        return frozenset(found)

    def kind(self, value: Value) -> str:
        """Return the C++ type in which a value is computed."""
        kind = c_type(value.dtype)
        return "double" if kind == "float" and value in self.wide else kind

    def _width(self) -> int:
        """Elements of a step: the schedule's, but no more than there are."""
        program = self.program
        there = program.lane if program.lane is not None else (program.cols or (1,))[-1]
        width = self.schedule.cpu_lanes
        if program.has_scan and not self.laned:
            width = max(width, 256)
        while width > 8 and width // 2 >= there:
            width //= 2
        return width

    def _kept(self) -> list[Value]:
        """Costly full-size values that a later pass needs again."""
        program = self.program
        if self.laned or not self.schedule.cpu_keep or len(program.passes) < 2:
            return []
        found = []
        for value in program.values:
            uses = [n for n, step in enumerate(program.passes) if value in step.values]
            costly = isinstance(value, Scan) or (isinstance(value, Map) and value.op in COSTLY)
            if len(uses) > 1 and costly and value not in program.reads:
                found.append(value)
        fits = len(found) * 4 * program.num_cols <= KEEP_BYTES
        return found if fits and len(program.cols) == 1 else []

    def write(self) -> str:
        """Return the function.

        Raises:
            Unsupported: a dtype or an op has no C++ form.
        """
        text = self.text
        text.lines.append(f"static void {self.name}({self._parameters()}) {{")
        if self.program.has_reduction and self.split:
            self._write_split()
        elif self.program.has_reduction or self.program.has_scan:
            self._write_rows()
        else:
            self._write_pointwise()
        text.lines.append("}")
        return "\n".join(text.lines) + "\n"

    def _parameters(self) -> str:
        reads: dict[str, str] = {}
        for value, pointer in self.pointers.items():
            if value in self.program.reads:
                reads[pointer] = f"const {c_type(value.dtype)}* __restrict {pointer}"
        for value, pointer in self.outputs.items():
            reads[pointer] = f"{c_type(value.dtype)}* __restrict {pointer}"
        return ", ".join([*reads.values(), "int threads"])

    def arguments(self) -> str:
        """Return the arguments of a call, in the order of the parameters."""
        names = [p for v, p in self.pointers.items() if v in self.program.reads]
        return ", ".join(dict.fromkeys([*names, *self.outputs.values(), "threads"]))

    # The three shapes of a kernel.

    def _write_pointwise(self) -> None:
        program, text = self.program, self.text
        rows, last = prod(program.rows), (program.cols or (1,))[-1]
        chunk = min(last, self.schedule.cpu_chunk)
        chunks = -(-last // chunk)
        self._parallel(rows * chunks, total=rows * last)
        text.add(f"const long row = unit / {chunks}L, from = unit % {chunks}L * {chunk}L;")
        text.add(f"const long to = from + {chunk}L < {last}L ? from + {chunk}L : {last}L;")
        self._row_indices()
        self._row_values(0, guard="from == 0")
        for step in program.passes:
            self._walk(step, number=0, span=("from", "to"))
        text.add("}")

    def _write_rows(self) -> None:
        program, text = self.program, self.text
        rows = prod(program.rows)
        if self.laned:
            lanes = -(-program.lane // self.width) if program.lane else 1
            self._parallel(rows * lanes, total=program.num_rows * program.num_cols)
            text.add(f"const long row = unit / {lanes}L, lane = unit % {lanes}L * {self.width}L;")
            text.add(
                f"const long m = lane + {self.width}L < {program.lane}L"
                f" ? {self.width}L : {program.lane}L - lane;"
            )
        else:
            self._parallel(rows, total=rows * program.num_cols)
            text.add("const long row = unit;")
        for value in self.kept:
            text.add(
                f"alignas(64) {c_type(value.dtype)} keep_{self.names[value]}[{program.num_cols}];"
            )
        self._row_indices()
        for number, step in enumerate(program.passes):
            self._row_values(number)
            self._declare_totals(step)
            self._walk(step, number=number)
            self._name_totals(step)
        self._row_values(len(program.passes))
        text.add("}")

    def _write_split(self) -> None:
        program, text = self.program, self.text
        rows = prod(program.rows)
        first = program.cols[0]
        below = prod(program.cols[1:])
        chunk = max(1, min(first, self.schedule.cpu_chunk // max(below, 1)))
        chunks = -(-first // chunk)
        for reduction in self.reductions:
            kind = total_type(reduction)
            name = self.names[reduction]
            text.add(f"{kind} total_{name}[{rows}];")
        for number, step in enumerate(program.passes):
            for reduction in step.reductions:
                name = self.names[reduction]
                kind = total_type(reduction)
                size = f"{rows * chunks} * sizeof({kind})"
                text.add(f"{kind}* const part_{name} = ({kind}*)malloc({size});")
            self._parallel(rows * chunks, total=rows * program.num_cols)
            text.add(f"const long row = unit / {chunks}L, from = unit % {chunks}L * {chunk}L;")
            text.add(f"const long to = from + {chunk}L < {first}L ? from + {chunk}L : {first}L;")
            self._row_indices()
            self._row_prologue(number)
            self._declare_totals(step)
            self._walk(step, number=number, span=("from", "to"))
            for reduction in step.reductions:
                name = self.names[reduction]
                text.add(f"part_{name}[unit] = sum_{name};")
            text.add("}")
            for reduction in step.reductions:
                name, join = self.names[reduction], JOIN[reduction.kind]
                text.add(
                    f"for (long row = 0; row < {rows}L; row++) {{",
                    f"{total_type(reduction)} sum = ({total_type(reduction)}){neutral(reduction)};",
                    f"for (long at = 0; at < {chunks}L; at++)",
                    f"  sum = {join}(part_{name}[row * {chunks}L + at], sum);",
                    f"total_{name}[row] = sum;",
                    "}",
                    f"free(part_{name});",
                )
        text.add(f"for (long row = 0; row < {rows}L; row++) {{")
        self._row_indices()
        for number in range(len(program.passes) + 1):
            self._row_values(number)
            if number < len(program.passes):
                for reduction in program.passes[number].reductions:
                    self._name_total(reduction, f"total_{self.names[reduction]}[row]")
        text.add("}")

    def _row_prologue(self, number: int) -> None:
        """Row values that pass `number` of a split row needs, without their stores."""
        for level in range(number + 1):
            self._row_values(level, store=False)
            if level < number:
                for reduction in self.program.passes[level].reductions:
                    self._name_total(reduction, f"total_{self.names[reduction]}[row]")

    # Pieces.

    def _parallel(self, units: int, *, total: int) -> None:
        if total >= PARALLEL_ELEMENTS and units > 1:
            self.text.add("#pragma omp parallel for num_threads(threads) schedule(static)")
        self.text.add(f"for (long unit = 0; unit < {units}L; unit++) {{")

    def _row_indices(self) -> None:
        rows = self.program.rows
        if len(rows) == 1:
            self.text.add("const long r0 = row;")
            return
        below = 1
        for place in reversed(range(len(rows))):
            turn = f"row / {below}L" if below > 1 else "row"
            self.text.add(f"const long r{place} = {turn}{f' % {rows[place]}L' if place else ''};")
            below *= rows[place]

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

    def _row_values(self, number: int, *, store: bool = True, guard: str = "") -> None:
        """Compute the values of one row before pass `number`, and store those that are wanted."""
        program, text = self.program, self.text
        if number >= len(program.row_values):
            return
        lines: list[str] = []
        for value in program.row_values[number]:
            lines += self.statement(value, inner="0", row=True)
        stores = []
        if store:
            for value in program.row_stores[number]:
                address = self.address(program.writes[value], inner="0", lane="(lane + j)")
                stores.append(f"{self.outputs[value]}[{address}] = {self.use(value)};")
        if not self.laned:
            text.add(*lines)
            text.add(*(f"if ({guard}) {line}" if guard else line for line in stores))
        elif lines or stores:
            for value in program.row_values[number]:
                if value in program.reads or not isinstance(value, View | Const):
                    text.add(f"{self.kind(value)} a{self.names[value]}[{self.width}];")
            text.add("#pragma omp simd", "for (long j = 0; j < m; j++) {")
            text.add(*lines, *stores, "}")

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
            return [f"{target} = {self.pointers[value]}[{address}];"]
        if isinstance(value, Iota):
            address = self.address(self.program.reads[value], inner=inner, lane=lane)
            return [f"{target} = {address};"]
        if isinstance(value, Map):
            wide = value in self.wide
            args = [self.use(arg, wide=wide) for arg in value.args]
            return [f"{target} = {expression(value, args, kind=self.kind(value))};"]
        return []

    def use(self, value: Value, *, wide: bool = False) -> str:
        """Return a computed value as C++; float32 ones as float64 if `wide`."""
        while isinstance(value, View) and value not in self.program.reads:
            value = value.arg
        if isinstance(value, Const):
            return literal(value, wide=wide)
        name = self.names[value]
        if value in self.arrayed:
            name = f"x_{name}[j]"
        elif self.laned and self._is_row(value):
            name = f"a{name}[j]"
        held, wanted = self.kind(value), c_type(value.dtype)
        if wide and wanted == "float":
            wanted = "double"
        return name if held == wanted else f"({wanted}){name}"

    def first_pass(self, value: Value) -> int:
        """Return the first pass that computes a full-size value."""
        return next(n for n, step in enumerate(self.program.passes) if value in step.values)

    def _is_row(self, value: Value) -> bool:
        return any(value in row for row in self.program.row_values) or (
            isinstance(value, Reduce) and value not in self.program.reads
        )

    def _declare_totals(self, step: Pass) -> None:
        for reduction in step.reductions:
            kind, name = total_type(reduction), self.names[reduction]
            if self.laned:
                self.text.add(f"{kind} sum_{name}[{self.width}];")
                self.text.add(
                    f"for (long j = 0; j < {self.width}L; j++) "
                    f"sum_{name}[j] = ({kind}){neutral(reduction)};"
                )
            else:
                self.text.add(f"{kind} sum_{name} = ({kind}){neutral(reduction)};")

    def _name_totals(self, step: Pass) -> None:
        for reduction in step.reductions:
            name, kind = self.names[reduction], self.kind(reduction)
            if self.laned:
                self.text.add(f"{kind} a{name}[{self.width}];")
                self.text.add(
                    f"for (long j = 0; j < {self.width}L; j++) a{name}[j] = ({kind})sum_{name}[j];"
                )
            else:
                self._name_total(reduction, f"sum_{name}")

    def _name_total(self, reduction: Reduce, total: str) -> None:
        kind = self.kind(reduction)
        self.text.add(f"const {kind} {self.names[reduction]} = ({kind}){total};")

    def _walk(self, step: Pass, *, number: int, span: tuple[str, str] | None = None) -> None:
        WalkWriter(self, step, number=number, span=span).write()
