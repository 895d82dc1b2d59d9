"""A program as a C++ function.

A thread takes one row at a time (or a chunk of a long row). Inside, `j` counts the elements of a
step: consecutive columns, or lanes. Every reduction has one partial result for each `j`, so that
the loop over `j` becomes vector code and the result depends neither on the number of threads nor
on the width of the machine's vectors. Sums go on to float64 after a few hundred steps.
"""

from __future__ import annotations

from math import prod

from kopt.actors.rewriter.codegen.cpp.expressions import c_type, stored_type
from kopt.actors.rewriter.codegen.cpp.totals import JOIN, neutral, total_type
from kopt.actors.rewriter.codegen.cpp.values import ValueWriter
from kopt.actors.rewriter.codegen.cpp.walk import WalkWriter
from kopt.actors.rewriter.codegen.ir import Const, Reduce, View
from kopt.actors.rewriter.codegen.program import Pass

SPLIT_ROWS = 16
"""Fewer rows than this do not keep the threads busy: their columns are shared out."""
SPLIT_COLS = 65536
"""Shorter rows are not shared out."""
PARALLEL_ELEMENTS = 16384
"""Smaller kernels run on the calling thread."""


class KernelWriter(ValueWriter):
    """Writes one program."""

    def write(self) -> str:
        """Return the function.

        Raises:
            Unsupported: a dtype or an op has no C++ form.
        """
        text = self.text
        text.lines.append(f"static void {self.name}({self._parameters()}) {{")
        if self.program.has_reduction and self._is_split():
            self._write_split()
        elif self.program.has_reduction or self.program.has_scan:
            self._write_rows()
        else:
            self._write_pointwise()
        text.lines.append("}")
        return "\n".join(text.lines) + "\n"

    def _is_split(self) -> bool:
        program = self.program
        few_long_rows = program.num_rows < SPLIT_ROWS and program.num_cols >= SPLIT_COLS
        return few_long_rows and not self.laned and not program.has_scan

    def _parameters(self) -> str:
        reads: dict[str, str] = {}
        for value, pointer in self.pointers.items():
            if value in self.program.reads:
                reads[pointer] = f"const {stored_type(value.dtype)}* __restrict {pointer}"
        for value, pointer in self.outputs.items():
            reads[pointer] = f"{stored_type(value.dtype)}* __restrict {pointer}"
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
            size = program.num_cols * (self.width if self.laned else 1)
            text.add(f"alignas(64) {c_type(value.dtype)} keep_{self.names[value]}[{size}];")
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
                stores.append(f"{self.outputs[value]}[{address}] = {self.element(value)};")
        if not self.laned:
            text.add(*lines)
            text.add(*(f"if ({guard}) {line}" if guard else line for line in stores))
        elif lines or stores:
            for value in program.row_values[number]:
                if value in program.reads or not isinstance(value, View | Const):
                    text.add(f"{self.kind(value)} a{self.names[value]}[{self.width}];")
            text.add("#pragma omp simd", "for (long j = 0; j < m; j++) {")
            text.add(*lines, *stores, "}")

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
