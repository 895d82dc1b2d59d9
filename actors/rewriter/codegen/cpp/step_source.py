"""One step of a walk: the statements for its elements, and what is moved in blocks around them.

A step is `m` neighbouring elements (columns, or lanes). Half precision is widened before its loop
and narrowed after it, in blocks for which CPUs have instructions; results that are written past
the caches leave in blocks as well.
"""

from __future__ import annotations

import torch

from kopt.actors.rewriter.codegen.cpp.expressions import (
    BLOCKWISE,
    HALVES,
    c_type,
    stored_type,
)
from kopt.actors.rewriter.codegen.cpp.totals import JOIN, scan_type, total_type
from kopt.actors.rewriter.codegen.cpp.values import ValueWriter
from kopt.actors.rewriter.codegen.ir import Const, Map, Reduce, Scan, Value, View, operands
from kopt.actors.rewriter.codegen.program import Index, Pass

FEW_TERMS = 32
"""Sums of no more terms are made in the dtype of the terms, whose own rounding is as large."""


class StepWriter:
    """Writes the steps of one pass into the text of its kernel."""

    def __init__(self, kernel: ValueWriter, step: Pass, *, number: int) -> None:
        """Prepare to write.

        Args:
            kernel: the kernel that the walk belongs to.
            step: what to compute.
            number: of the pass.
        """
        self.kernel = kernel
        self.step = step
        self.width = kernel.width
        self.values = self._needed(number)
        self.scans = [v for v in self.values if isinstance(v, Scan) and self._is_made(v)]
        reads = kernel.program.reads
        self.widened = [
            v
            for v in self.values
            if v in reads and v.dtype in BLOCKWISE and not self._is_kept(v) and self._runs(reads[v])
        ]
        """Half precision that is read a block at a time."""

    def partial_type(self, reduction: Reduce) -> str:
        """Return the type of a step's partial results.

        Sums that are stored (a loss, a mean) are made in float64 throughout, unless they are
        short. Those that only scale the elements of their row are not worth the conversions: the
        elements' own rounding is larger.
        """
        is_long = self.kernel.program.num_cols > FEW_TERMS
        is_exact = self.kernel.schedule.cpu_math == "exact" and reduction in self.kernel.stored
        return total_type(reduction) if is_exact and is_long else c_type(reduction.dtype)

    def write_step(self, *, inner: str) -> None:
        """Append one step.

        Args:
            inner: C++ name of the last column's index: the first one of the step, or the only
                one if its elements are lanes.
        """
        text = self.kernel.text
        for value in self.widened:
            name, pointer = self.kernel.names[value], self.kernel.pointers[value]
            address = self.kernel.address(
                self.kernel.program.reads[value], inner=inner, lane="lane"
            )
            text.add(
                f"alignas(64) float wide_{name}[{self.width}];",
                f"k_widen_{HALVES[value.dtype]}(wide_{name}, {pointer} + ({address}), m);",
            )
        blocks = [v for v in self.step.stores if self._leaves_in_blocks(v)]
        for value in blocks:
            kind = c_type(value.dtype) if value.dtype in BLOCKWISE else stored_type(value.dtype)
            text.add(f"alignas(64) {kind} out_{self.kernel.names[value]}[{self.width}];")
        element = inner if self.kernel.laned else f"({inner} + j)"
        if self.scans and not self.kernel.laned:
            self._scanned_elements(element)
        else:
            text.add("#pragma omp simd", "for (long j = 0; j < m; j++) {")
            for value in self.values:
                text.add(*self._statement(value, inner=element))
            text.add(*self._effects(inner=element), "}")
        for value in blocks:
            self._write_block(value, inner=inner)

    def _write_block(self, value: Value, *, inner: str) -> None:
        name, text = self.kernel.names[value], self.kernel.text
        address = self.kernel.address(self.kernel.program.writes[value], inner=inner, lane="lane")
        target, source = f"{self.kernel.outputs[value]} + ({address})", f"out_{name}"
        if value.dtype in BLOCKWISE:
            narrow = f"k_narrow_{HALVES[value.dtype]}"
            if not self._is_streamed(value):
                text.add(f"{narrow}({target}, {source}, m);")
                return
            text.add(
                f"alignas(64) {stored_type(value.dtype)} raw_{name}[{self.width}];",
                f"{narrow}(raw_{name}, {source}, m);",
            )
            source = f"raw_{name}"
        text.add(f"k_stream({target}, {source}, m);")

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

    def _runs(self, index: Index) -> bool:
        """Whether the elements of a step lie side by side in memory."""
        return index.lane == 1 if self.kernel.laned else bool(index.cols) and index.cols[-1] == 1

    def _is_streamed(self, value: Value) -> bool:
        is_row = not self.kernel.laned and self.kernel.schedule.cpu_streaming
        return is_row and self._runs(self.kernel.program.writes[value])

    def _leaves_in_blocks(self, value: Value) -> bool:
        narrowed = value.dtype in BLOCKWISE and self._runs(self.kernel.program.writes[value])
        return narrowed or self._is_streamed(value)

    def _statement(self, value: Value, *, inner: str) -> list[str]:
        name, kind = self.kernel.names[value], c_type(value.dtype)
        if self._is_kept(value):
            return [f"const {kind} {name} = {self.kernel.kept_place(value, inner=inner)};"]
        if value in self.widened:
            return [f"const {kind} {name} = wide_{name}[j];"]
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
        lines += [f"{self.kernel.kept_place(v, inner=inner)} = {self.kernel.use(v)};" for v in new]
        for reduction in self.step.reductions:
            name, join = self.kernel.names[reduction], JOIN[reduction.kind]
            term = self._term(reduction)
            lines.append(f"part_{name}[j] = {join}({term}, part_{name}[j]);")
        for value in self.step.stores:
            if self._leaves_in_blocks(value):
                is_wide = value.dtype in BLOCKWISE
                held = self.kernel.use(value) if is_wide else self.kernel.element(value)
                lines.append(f"out_{self.kernel.names[value]}[j] = {held};")
            else:
                index = self.kernel.program.writes[value]
                address = self.kernel.address(index, inner=inner, lane="(lane + j)")
                lines.append(
                    f"{self.kernel.outputs[value]}[{address}] = {self.kernel.element(value)};"
                )
        return lines

    def _term(self, reduction: Reduce) -> str:
        """Return what an element adds; a product is not rounded before it is added in float64."""
        kind, arg = self.partial_type(reduction), reduction.arg
        is_wide = kind == "double" and arg.dtype == torch.float32
        if is_wide and isinstance(arg, Map) and arg.op == "mul" and self._is_made(arg):
            return " * ".join(f"(double){self.kernel.use(factor)}" for factor in arg.args)
        return f"({kind}){self.kernel.use(arg)}"

    def _scanned_elements(self, inner: str) -> None:
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
                self._array_loop(waiting, inner)
                waiting = []
                self._scan_loop(value)
            else:
                waiting.append(value)
        self._array_loop(waiting, inner)
        text.add("#pragma omp simd", "for (long j = 0; j < m; j++) {")
        text.add(*self._effects(inner=inner), "}")
        kernel.arrayed.clear()

    def _array_loop(self, values: list[Value], inner: str) -> None:
        text, kernel = self.kernel.text, self.kernel
        if not any(value in kernel.arrayed for value in values):
            return
        text.add("#pragma omp simd", "for (long j = 0; j < m; j++) {")
        for value in values:
            lines = self._statement(value, inner=inner)
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
