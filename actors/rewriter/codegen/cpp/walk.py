"""One walk over the columns of a row: the loops around its steps, and the partial results."""

from __future__ import annotations

from math import prod

from kopt.actors.rewriter.codegen.cpp.step_source import StepWriter
from kopt.actors.rewriter.codegen.cpp.totals import JOIN, neutral, scan_type, total_type
from kopt.actors.rewriter.codegen.cpp.values import ValueWriter
from kopt.actors.rewriter.codegen.program import Pass

FOLD_STEPS = 256
"""Steps after which float32 partial sums are added to a float64 total."""
FOLD_ELEMENTS = 2048
"""Shorter inner loops are not worth a fold of their own."""


class WalkWriter(StepWriter):
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
        super().__init__(kernel, step, number=number)
        self.span = span
        self.cols = kernel.program.cols or (1,)

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

    def _loops(self) -> None:
        text, cols = self.kernel.text, self.cols
        depth = self._fold_depth()
        last = len(cols) - 1
        for place in range(last):
            if place == depth:
                self._open_partials()
            low, high = self._bounds(place)
            text.add(f"for (long c{place} = {low}; c{place} < {high}; c{place}++) {{")
        low, high = self._bounds(last)
        folds = depth == last and bool(self.step.reductions)
        elements = FOLD_STEPS * (1 if self.kernel.laned else self.width)
        is_cut = folds and cols[last] > elements
        if is_cut:
            text.add(
                f"for (long block = {low}; block < {high}; block += {elements}L) {{",
                f"const long end = block + {elements}L < {high} ? block + {elements}L : {high};",
            )
            low, high = "block", "end"
        if folds:
            self._open_partials(brace=False)
        self._steps(low, high)
        if folds:
            self._fold()
        if is_cut:
            text.add("}")
        for place in reversed(range(last)):
            text.add("}")
            if place == depth:
                self._fold()
                text.add("}")

    def _steps(self, low: str, high: str) -> None:
        """Append the steps from one bound to the other, the last one perhaps shorter."""
        text, width, last = self.kernel.text, self.width, self.cols[-1]
        if self.kernel.laned:
            text.add(f"for (long i = {low}; i < {high}; i++) {{")
            self.write_step(inner="i")
            text.add("}")
            return
        text.add("auto step = [&](const long c, const long m) __attribute__((always_inline)) {")
        self.write_step(inner="c")
        text.add("};")
        if self.kernel.is_short and (low, high) == ("0", f"{last}L"):
            whole = last - last % width
            text.add(
                f"#pragma GCC unroll {max(1, last // width)}",
                f"for (long c = 0; c < {whole}L; c += {width}L) step(c, {width}L);",
            )
            if last % width:
                text.add(f"step({whole}L, {last % width}L);")
            return
        text.add(
            f"long c = {low};",
            f"for (; c + {width}L <= {high}; c += {width}L) step(c, {width}L);",
            f"if (c < {high}) step(c, {high} - c);",
        )

    def _fold_depth(self) -> int:
        """Return the loop whose whole run makes one set of partial results."""
        for depth in reversed(range(len(self.cols))):
            if prod(self.cols[depth:]) >= FOLD_ELEMENTS:
                return depth
        return 0

    def _bounds(self, place: int) -> tuple[str, str]:
        if place == 0 and self.span is not None:
            return self.span
        return "0", f"{self.cols[place]}L"

    def _open_partials(self, *, brace: bool = True) -> None:
        text = self.kernel.text
        if brace:
            text.add("{")
        for reduction in self.step.reductions:
            name, kind = self.kernel.names[reduction], self.partial_type(reduction)
            text.add(
                f"alignas(64) {kind} part_{name}[{self.width}];",
                f"for (long j = 0; j < {self.width}L; j++) part_{name}[j] = {neutral(reduction)};",
            )

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
                continue
            joined = f"[](auto a, auto b) {{ return {join}(a, b); }}"
            text.add(
                f"const {kind} all_{name} = k_fold<{self.width}>(part_{name}, {joined});",
                f"sum_{name} = {join}(all_{name}, sum_{name});",
            )
