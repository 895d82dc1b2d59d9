"""One walk over the columns of a row: the loops that do the work."""

from __future__ import annotations

from math import prod

import torch

from kopt.actors.rewriter.codegen.cpp.expressions import c_type, stored_type
from kopt.actors.rewriter.codegen.cpp.totals import JOIN, neutral, scan_type, total_type
from kopt.actors.rewriter.codegen.cpp.values import ValueWriter
from kopt.actors.rewriter.codegen.ir import Const, Map, Reduce, Scan, Value, View, operands
from kopt.actors.rewriter.codegen.program import Pass

FOLD_STEPS = 256
"""Steps after which float32 partial sums are added to a float64 total."""
FOLD_ELEMENTS = 2048
"""Shorter inner loops are not worth a fold of their own."""


class WalkWriter:
    """Writes the walk of one pass into the text of its kernel."""

    def __init__(
        self, kernel: ValueWriter, step: Pass, *, number: int, span: tuple[str, str] | None
    ) -> None:
        """Prepare to write.

        Args:
            kernel: the kernel that the walk belongs to.
            step: what to compute.
            number: of the pass.
            span: bounds of the outermost column loop, as C++; None walks all of it.
        """
        self.kernel = kernel
        self.step = step
        self.span = span
        self.width = kernel.width
        self.cols = kernel.program.cols or (1,)
        self.values = self._needed(number)
        self.scans = [v for v in self.values if isinstance(v, Scan) and self._is_made(v)]
        self.number = number

    def write(self) -> None:
        """Append the walk."""
        text = self.kernel.text
        text.add("{")
        for scan in self.scans:
            name, kind = self.kernel.names[scan], scan_type(scan)
            start = "0" if scan.kind == "sum" else "1"
            if self.kernel.laned:
                text.add(
                    f"{kind} carry_{name}[{self.width}];",
                    f"for (long j = 0; j < {self.width}L; j++) carry_{name}[j] = {start};",
                )
            else:
                text.add(f"{kind} carry_{name} = {start};")
        if self.kernel.laned:
            text.add("auto walk = [&](const long m) __attribute__((always_inline)) {")
            self._loops()
            text.add("};", f"if (m == {self.width}L) walk({self.width}L); else walk(m);")
        else:
            self._loops()
        text.add("}")

    def _needed(self, number: int) -> list[Value]:
        """Return the values to compute here: what an earlier pass kept ends the search."""
        found: set[Value] = set()
        stack = [*(r.arg for r in self.step.reductions), *self.step.stores]
        own = set(self.step.values)
        self.fetched: set[Value] = set()
        while stack:
            value = stack.pop()
            if value not in own or value in found:
                continue
            found.add(value)
            if value in self.kernel.kept and number > self.kernel.first_pass(value):
                self.fetched.add(value)
            elif value not in self.kernel.program.reads:
                stack.extend(operands(value))
        return [value for value in self.step.values if value in found]

    def _is_kept(self, value: Value) -> bool:
        return value in self.fetched

    def _is_made(self, value: Value) -> bool:
        """Whether this walk computes a value, rather than fetch it."""
        return value not in self.kernel.program.reads and not self._is_kept(value)

    def _loops(self) -> None:
        text, cols = self.kernel.text, self.cols
        depth = self._fold_depth()
        opened = 0
        for place in range(len(cols) - 1):
            if place == depth:
                self._open_partials()
                opened += 1
            low, high = self._bounds(place)
            text.add(f"for (long c{place} = {low}; c{place} < {high}; c{place}++) {{")
            opened += 1
        low, high = self._bounds(len(cols) - 1)
        blocked = depth == len(cols) - 1 and bool(self.step.reductions)
        if blocked:
            elements = FOLD_STEPS * (1 if self.kernel.laned else self.width)
            text.add(
                f"for (long block = {low}; block < {high}; block += {elements}L) {{",
                f"const long end = block + {elements}L < {high} ? block + {elements}L : {high};",
            )
            self._open_partials(brace=False)
            low, high = "block", "end"
        self._innermost(low, high)
        if blocked:
            self._fold()
            text.add("}")
        for place in reversed(range(len(cols) - 1)):
            text.add("}")
            if place == depth:
                self._fold()
                text.add("}")

    def _fold_depth(self) -> int:
        """Return the loop whose whole run makes one set of partial results."""
        for depth in reversed(range(len(self.cols))):
            if prod(self.cols[depth:]) >= FOLD_ELEMENTS:
                return depth
        return 0

    def _bounds(self, place: int) -> tuple[str, str]:
        if place == 0 and self.span is not None:
            return self.span
        if place == len(self.cols) - 1 and self.span is not None and len(self.cols) == 1:
            return self.span
        return "0", f"{self.cols[place]}L"

    def _open_partials(self, *, brace: bool = True) -> None:
        text = self.kernel.text
        if brace:
            text.add("{")
        for reduction in self.step.reductions:
            name, kind = self.kernel.names[reduction], self._partial_type(reduction)
            text.add(
                f"alignas(64) {kind} part_{name}[{self.width}];",
                f"for (long j = 0; j < {self.width}L; j++) part_{name}[j] = {neutral(reduction)};",
            )

    def _partial_type(self, reduction: Reduce) -> str:
        """Return the type of a step's partial results.

        Sums that are stored (a loss, a mean) are made in float64 throughout. Those that only scale
        the elements of their row are not worth the conversions: the elements' own rounding is
        larger.
        """
        exact = self.kernel.schedule.cpu_math == "exact" and reduction in self.kernel.stored
        return total_type(reduction) if exact else c_type(reduction.dtype)

    def _fold(self) -> None:
        text = self.kernel.text
        for reduction in self.step.reductions:
            name, join = self.kernel.names[reduction], JOIN[reduction.kind]
            kind = total_type(reduction)
            if self.kernel.laned:
                text.add(
                    f"for (long j = 0; j < {self.width}L; j++) "
                    f"sum_{name}[j] = {join}(({kind})part_{name}[j], sum_{name}[j]);"
                )
            else:
                text.add(
                    f"for (long w = {self.width // 2}L; w; w /= 2)",
                    f"  for (long j = 0; j < w; j++) "
                    f"part_{name}[j] = {join}(part_{name}[j], part_{name}[j + w]);",
                    f"sum_{name} = {join}(({kind})part_{name}[0], sum_{name});",
                )

    def _innermost(self, low: str, high: str) -> None:
        text = self.kernel.text
        if self.kernel.laned:
            text.add(f"for (long i = {low}; i < {high}; i++) {{")
            self._element_loop(inner="i", count="m")
            text.add("}")
            return
        text.add("auto step = [&](const long c, const long m) __attribute__((always_inline)) {")
        streamed = self._streamed()
        for value in streamed:
            kind, name = stored_type(value.dtype), self.kernel.names[value]
            text.add(f"alignas(64) {kind} out_{name}[{self.width}];")
        if self.scans:
            self._scanned_elements()
        else:
            self._element_loop(inner="(c + j)", count="m")
        for value in streamed:
            address = self.kernel.address(self.kernel.program.writes[value], inner="c", lane="0")
            output = self.kernel.outputs[value]
            text.add(f"k_stream({output} + ({address}), out_{self.kernel.names[value]}, m);")
        width = self.width
        text.add(
            "};",
            f"long c = {low};",
            f"for (; c + {width}L <= {high}; c += {width}L) step(c, {width}L);",
            f"if (c < {high}) step(c, {high} - c);",
        )

    def _streamed(self) -> list[Value]:
        if self.kernel.laned or not self.kernel.schedule.cpu_streaming:
            return []
        writes = self.kernel.program.writes
        return [v for v in self.step.stores if writes[v].cols and writes[v].cols[-1] == 1]

    def _element_loop(self, *, inner: str, count: str) -> None:
        text = self.kernel.text
        text.add("#pragma omp simd", f"for (long j = 0; j < {count}; j++) {{")
        for value in self.values:
            text.add(*self._statement(value, inner=inner))
        text.add(*self._effects(inner=inner), "}")

    def _statement(self, value: Value, *, inner: str) -> list[str]:
        name, kind = self.kernel.names[value], c_type(value.dtype)
        if self._is_kept(value):
            return [f"const {kind} {name} = keep_{name}[{inner}];"]
        if isinstance(value, Scan) and self._is_made(value):  # lanes: each has its own carry
            join = JOIN[value.kind]
            wide = scan_type(value)
            return [
                f"carry_{name}[j] = {join}(carry_{name}[j], ({wide}){self.kernel.use(value.arg)});",
                f"const {kind} {name} = ({kind})carry_{name}[j];",
            ]
        return self.kernel.statement(value, inner=inner)

    def _effects(self, *, inner: str) -> list[str]:
        """Return the statements that keep, reduce and store."""
        lines: list[str] = []
        new = [v for v in self.kernel.kept if v in self.values and not self._is_kept(v)]
        lines += [f"keep_{self.kernel.names[v]}[{inner}] = {self.kernel.use(v)};" for v in new]
        for reduction in self.step.reductions:
            name, join = self.kernel.names[reduction], JOIN[reduction.kind]
            term = self._term(reduction)
            lines.append(f"part_{name}[j] = {join}({term}, part_{name}[j]);")
        streamed = self._streamed()
        for value in self.step.stores:
            if value in streamed:
                lines.append(f"out_{self.kernel.names[value]}[j] = {self.kernel.element(value)};")
            else:
                index = self.kernel.program.writes[value]
                address = self.kernel.address(index, inner=inner, lane="(lane + j)")
                lines.append(
                    f"{self.kernel.outputs[value]}[{address}] = {self.kernel.element(value)};"
                )
        return lines

    def _term(self, reduction: Reduce) -> str:
        """Return what an element adds; a product is not rounded before it is added in float64."""
        kind, arg = self._partial_type(reduction), reduction.arg
        is_wide = kind == "double" and arg.dtype == torch.float32
        if is_wide and isinstance(arg, Map) and arg.op == "mul" and self._is_made(arg):
            return " * ".join(f"(double){self.kernel.use(factor)}" for factor in arg.args)
        return f"({kind}){self.kernel.use(arg)}"

    def _scanned_elements(self) -> None:
        """A step with scans: between two of them, a loop that leaves its values in arrays."""
        text, kernel = self.kernel.text, self.kernel
        reads = kernel.program.reads
        arrays: list[Value] = [
            v for v in self.values if v in reads or not isinstance(v, View | Const)
        ]
        for value in arrays:
            text.add(f"alignas(64) {c_type(value.dtype)} x_{kernel.names[value]}[{self.width}];")
        kernel.arrayed.update(arrays)
        waiting: list[Value] = []
        for value in self.values:
            if isinstance(value, Scan) and self._is_made(value):
                self._array_loop(waiting)
                waiting = []
                self._scan_loop(value)
            else:
                waiting.append(value)
        self._array_loop(waiting)
        text.add("#pragma omp simd", "for (long j = 0; j < m; j++) {")
        text.add(*self._effects(inner="(c + j)"), "}")
        kernel.arrayed.clear()

    def _array_loop(self, values: list[Value]) -> None:
        text, kernel = self.kernel.text, self.kernel
        if not any(value in kernel.arrayed for value in values):
            return
        text.add("#pragma omp simd", "for (long j = 0; j < m; j++) {")
        for value in values:
            lines = self._statement(value, inner="(c + j)")
            if value in kernel.arrayed:
                name = kernel.names[value]
                lines = [
                    line.replace(f"const {c_type(value.dtype)} {name} =", f"x_{name}[j] =")
                    for line in lines
                ]
            text.add(*lines)
        text.add("}")

    def _scan_loop(self, scan: Scan) -> None:
        text, kernel = self.kernel.text, self.kernel
        name, kind, wide = kernel.names[scan], c_type(scan.dtype), scan_type(scan)
        sign = "+" if scan.kind == "sum" else "*"
        start = "0" if scan.kind == "sum" else "1"
        text.add(
            "{",
            f"{wide} run = {start};",
            f"#pragma omp simd reduction(inscan, {sign}:run)",
            "for (long j = 0; j < m; j++) {",
            f"run {sign}= {kernel.use(scan.arg)};",
            "#pragma omp scan inclusive(run)",
            f"x_{name}[j] = ({kind})(carry_{name} {sign} run);",
            "}",
            f"carry_{name} {sign}= run;",
            "}",
        )
