"""A program as a C++ function.

A thread takes one row at a time (or a chunk of a long row). Inside, `j` counts the elements of a
step: consecutive columns, or lanes. Every reduction has one partial result for each `j`, so that
the loop over `j` becomes vector code and the result depends neither on the number of threads nor
on the width of the machine's vectors. Sums go on to float64 after at most FOLD steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from kopt.actors.rewriter.codegen.cpp.expressions import c_type, expression, literal
from kopt.actors.rewriter.codegen.ir import (
    Const,
    Iota,
    Map,
    Reduce,
    Scan,
    Unsupported,
    Value,
    View,
)
from kopt.actors.rewriter.codegen.program import Index, Pass, Program
from kopt.actors.rewriter.codegen.schedule import Schedule

FOLD = 256
"""Steps after which float32 partial sums are added to a float64 total."""
SPLIT_ROWS = 16
"""Fewer rows than this do not keep the threads busy: their columns are shared out."""
SPLIT_COLS = 65536
"""Shorter rows are not shared out."""
KEEP_BYTES = 1 << 18
"""Most that is kept of one row between passes; it should stay in the second-level cache."""
PARALLEL_ELEMENTS = 16384
"""Smaller kernels run on the calling thread."""
COSTLY = frozenset("exp expm1 log log1p tanh erf pow sin cos sigmoid log2 log10 atan".split())

NEUTRAL = {
    ("sum", "float"): "0",
    ("sum", "int"): "0",
    ("prod", "float"): "1",
    ("prod", "int"): "1",
    ("max", "float"): "-INFINITY",
    ("min", "float"): "INFINITY",
}
JOIN = {"sum": "k_add", "prod": "k_mul", "max": "k_max", "min": "k_min"}


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


def neutral(reduction: Reduce) -> str:
    """Return the C++ number that changes nothing in a reduction."""
    kind = c_type(reduction.dtype)
    family = "float" if kind in ("float", "double") else "int"
    if (reduction.kind, family) in NEUTRAL:
        return NEUTRAL[(reduction.kind, family)]
    bits = {"int64_t": "INT64", "int32_t": "INT32"}.get(kind)
    if bits is None:
        raise Unsupported(f"an extreme of {kind}")
    return f"{bits}_MIN" if reduction.kind == "max" else f"{bits}_MAX"


def total_type(reduction: Reduce) -> str:
    """Return the C++ type in which partial results of a reduction are brought together."""
    kind = c_type(reduction.dtype)
    return "double" if kind == "float" and reduction.kind in ("sum", "prod") else kind


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
        self.laned = program.lane is not None
        self.width = self._width()
        self.kept = self._kept()
        self.split = (
            not self.laned
            and not program.has_scan
            and program.num_rows < SPLIT_ROWS
            and program.num_cols >= SPLIT_COLS
        )

    def _width(self) -> int:
        """Elements of a step: the schedule's, but no more than there are."""
        program = self.program
        there = program.lane if program.lane is not None else (program.cols or (1,))[-1]
        width = self.schedule.cpu_lanes
        if self.laned:
            width = max(width, 64)
        while width > 8 and width // 2 >= there:
            width //= 2
        return width

    def _kept(self) -> list[Value]:
        """Costly full-size values that a later pass needs again."""
        program = self.program
        if self.laned or not self.schedule.cpu_keep or len(program.passes) < 2:
            return []
        found: list[Value] = []
        for value in program.values:
            uses = [n for n, step in enumerate(program.passes) if value in step.values]
            if len(uses) > 1 and isinstance(value, Map) and value.op in COSTLY:
                found.append(value)
            if len(uses) > 1 and isinstance(value, Scan):
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
            self._walk(step, span=("from", "to"), accumulate=False)
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
                f"alignas(64) static thread_local {c_type(value.dtype)} "
                f"keep_{self.names[value]}[{program.num_cols}];"
            )
        self._row_indices()
        for number, step in enumerate(program.passes):
            self._row_values(number)
            self._declare_totals(step)
            self._walk(step, span=("0", f"{(program.cols or (1,))[-1]}L"), accumulate=True)
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
                text.add(
                    f"static thread_local {total_type(reduction)} part_{name}[{rows * chunks}];",
                    f"{total_type(reduction)}* const to_{name} = part_{name};",
                )
            self._parallel(rows * chunks, total=rows * program.num_cols)
            text.add(f"const long row = unit / {chunks}L, from = unit % {chunks}L * {chunk}L;")
            text.add(f"const long to = from + {chunk}L < {first}L ? from + {chunk}L : {first}L;")
            self._row_indices()
            self._row_prologue(number)
            self._declare_totals(step)
            self._walk(step, span=("from", "to"), accumulate=True, first_only=True)
            for reduction in step.reductions:
                name = self.names[reduction]
                text.add(f"to_{name}[unit] = sum_{name};")
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

    def _address(self, index: Index, *, inner: str, lane: str) -> str:
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
            lines += self._value(value, inner="0", row=True)
        stores = []
        if store:
            for value in program.row_stores[number]:
                address = self._address(program.writes[value], inner="0", lane="(lane + j)")
                stores.append(f"{self.outputs[value]}[{address}] = {self._use(value)};")
        if not self.laned:
            text.add(*lines)
            text.add(*(f"if ({guard}) {line}" if guard else line for line in stores))
        elif lines or stores:
            for value in program.row_values[number]:
                if not isinstance(value, View | Const):
                    text.add(f"{c_type(value.dtype)} a{self.names[value]}[{self.width}];")
            text.add("#pragma omp simd", "for (long j = 0; j < m; j++) {")
            text.add(*lines, *stores, "}")

    def _value(self, value: Value, *, inner: str, row: bool = False) -> list[str]:
        """Return the statement that computes one value, if it needs one."""
        name = self.names[value]
        target = f"const {c_type(value.dtype)} {name}"
        if self.laned and row and not isinstance(value, View | Const):
            target = f"a{name}[j]"
            self.names[value] = name
        lane = "(lane + j)" if self.laned else "0"
        if value in self.program.reads and not isinstance(value, Iota):
            address = self._address(self.program.reads[value], inner=inner, lane=lane)
            return [f"{target} = {self.pointers[value]}[{address}];"]
        if isinstance(value, Iota):
            address = self._address(self.program.reads[value], inner=inner, lane=lane)
            return [f"{target} = {address};"]
        if isinstance(value, Map):
            return [f"{target} = {expression(value, [self._use(arg) for arg in value.args])};"]
        return []

    def _use(self, value: Value) -> str:
        """Return the C++ name of a value that has been computed."""
        while isinstance(value, View):
            value = value.arg
        if isinstance(value, Const):
            return literal(value)
        name = self.names[value]
        if self.laned and self._is_row(value):
            return f"a{name}[j]"
        return name

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
            name, kind = self.names[reduction], c_type(reduction.dtype)
            if self.laned:
                self.text.add(f"{kind} a{name}[{self.width}];")
                self.text.add(
                    f"for (long j = 0; j < {self.width}L; j++) a{name}[j] = ({kind})sum_{name}[j];"
                )
            else:
                self._name_total(reduction, f"sum_{name}")

    def _name_total(self, reduction: Reduce, total: str) -> None:
        kind = c_type(reduction.dtype)
        self.text.add(f"const {kind} {self.names[reduction]} = ({kind}){total};")

    def _walk(
        self, step: Pass, *, span: tuple[str, str], accumulate: bool, first_only: bool = False
    ) -> None:
        """Write one walk over the columns; `span` bounds the last loop, or the first one."""
        from kopt.actors.rewriter.codegen.cpp.walk import write_walk

        write_walk(self, step, span=span, accumulate=accumulate, span_is_first=first_only)


def scan_types(values: Sequence[Value]) -> list[Scan]:
    """Return the scans among values."""
    return [value for value in values if isinstance(value, Scan)]
