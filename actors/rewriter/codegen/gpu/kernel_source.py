"""A program as one `@triton.jit` kernel, or as several when programs share the columns of a row.

Where a row has more columns than a tile, each pass walks them in steps. Where there are too few
rows to fill the device, a pass is a kernel of its own: each of its programs leaves a partial
result, and the next kernel begins by joining them, always in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from kopt.actors.rewriter.codegen.gpu.expressions import held_type
from kopt.actors.rewriter.codegen.gpu.tile_source import TileWriter
from kopt.actors.rewriter.codegen.gpu.tiles import power_of_two
from kopt.actors.rewriter.codegen.ir import Reduce, Scan
from kopt.actors.rewriter.codegen.program import Pass


class KernelWriter(TileWriter):
    """Writes the kernels of one program."""

    def write(self, name: str) -> tuple[str, list[str]]:
        """Return the kernels' source and the lines of Python that launch them.

        Args:
            name: of the jitted function; parts get a number after it.

        Raises:
            Unsupported: an op has no Triton form.
        """
        if self.flat:
            return self._write_flat(name)
        if self.tile.chunks > 1:
            return self._write_chunked(name)
        self.add_rows()
        if self.tile.persistent:
            full = self.tile.cols == self.program.num_cols
            self.add_cols("", high=None if full else str(self.program.num_cols))
        for number, step in enumerate(self.program.passes):
            self._row_values(number)
            self._walk(step, low="0", high=str(self.program.num_cols))
        self._row_values(len(self.program.passes))
        return self._finished(name, []), [self._launch(name, [], f"{self._blocks()},")]

    def _write_flat(self, name: str) -> tuple[str, list[str]]:
        program = self.program
        self.add_flat()
        self._row_values(0)
        for step in program.passes:
            for value in step.values:
                self.compute(value)
            for value in step.stores:
                self.store(value)
        blocks = -(-prod(program.rows) * program.num_cols // self.tile.cols)
        return self._finished(name, []), [self._launch(name, [], f"{blocks},")]

    def _write_chunked(self, name: str) -> tuple[str, list[str]]:
        program, tile = self.program, self.tile
        rows, chunks = program.num_rows, tile.chunks
        sources, launches = [], []
        known: list[Reduce] = []
        first = next(iter(self.outputs.values()))
        for number, step in enumerate(program.passes):
            for reduction in step.reductions:
                kind = "torch.float64" if reduction in self.wide else str(reduction.dtype)
                launches.append(
                    f"part_{self.names[reduction]} = "
                    f"torch.empty({rows * chunks}, dtype={kind}, device={first}.device)"
                )
            self.done.clear()
            self.add_rows()
            self._joined_before(number, store=False)
            self._row_values(number, store=False)
            self.add(f"low = {self.program_id(1)} * {tile.chunk}")
            self.add(f"high = tl.minimum(low + {tile.chunk}, {program.num_cols})")
            self._walk(step, low="low", high="high")
            for reduction in step.reductions:
                value = self.names[reduction]
                guard = f", mask={self.row_mask}" if self.row_mask else ""
                place = f"part_{value} + (x * {chunks} + tl.program_id(1))"
                self.add(f"tl.store({place}, {value}{guard})")
            known += step.reductions
            parts = [f"part_{self.names[r]}" for r in known]
            sources.append(self._finished(f"{name}_{number}", parts))
            grid = f"{self._blocks()}, {chunks}"
            launches.append(self._launch(f"{name}_{number}", parts, grid))
        if any(program.row_stores):
            parts = [f"part_{self.names[r]}" for r in known]
            last = len(program.passes)
            self.done.clear()
            self.add_rows()
            self._joined_before(last, store=True)
            self._row_values(last)
            sources.append(self._finished(f"{name}_{last}", parts))
            launches.append(self._launch(f"{name}_{last}", parts, f"{self._blocks()},"))
        return "".join(sources), launches

    def _blocks(self) -> int:
        return -(-self.program.num_rows // self.tile.rows)

    def _finished(self, kernel: str, parts: Sequence[str]) -> str:
        tensors = ", ".join([*self._tensors(), *parts])
        text = f"@triton.jit\ndef {kernel}({tensors}):\n" + "\n".join(self.lines) + "\n\n\n"
        self.lines = []
        return text

    def _tensors(self) -> list[str]:
        names = [p for v, p in self.pointers.items() if v in self.program.reads]
        return list(dict.fromkeys([*names, *self.outputs.values()]))

    def _launch(self, kernel: str, parts: Sequence[str], grid: str) -> str:
        arguments = ", ".join([*self._tensors(), *parts])
        return f"{kernel}[({grid})]({arguments}, num_warps={self.tile.warps})"

    def _row_values(self, number: int, *, store: bool = True) -> None:
        if number >= len(self.program.row_values):
            return
        for value in self.program.row_values[number]:
            self.compute(value)
        if store:
            for value in self.program.row_stores[number]:
                self.store(value)

    def _joined_before(self, number: int, *, store: bool) -> None:
        """Join the partial results of all passes before `number`, and compute what follows."""
        chunks = self.tile.chunks
        for level in range(number):
            self._row_values(level, store=store)
            for reduction in self.program.passes[level].reductions:
                name = self.names[reduction]
                masks = [self.row_mask, f"(p < {chunks})"]
                mask = " & ".join(m for m in masks if m)
                self.add(
                    f"p = tl.arange(0, {power_of_two(chunks)})[None, :]",
                    f"{name} = tl.load(part_{name} + (x * {chunks} + p), "
                    f"mask={mask}, other={self.neutral(reduction)})",
                    f"{name} = {self.across(reduction, name)}",
                )
                self.done.add(reduction)

    def _walk(self, step: Pass, *, low: str, high: str) -> None:
        if self.tile.persistent:
            for value in step.values:
                self.compute(value)
            for reduction in step.reductions:
                kind = held_type(reduction.dtype)
                term = self.term(reduction.arg, self.neutral(reduction), kind)
                self.add(f"{self.names[reduction]} = {self.across(reduction, term)}")
                self.done.add(reduction)
            for value in step.stores:
                self.store(value)
            return
        shape = f"[{self.tile.rows}, {self.tile.cols}]"
        for reduction in step.reductions:
            start, kind = self.neutral(reduction), held_type(reduction.dtype)
            self.add(f"part_of_{self.names[reduction]} = tl.full({shape}, {start}, {kind})")
        for value in step.values:
            if isinstance(value, Scan) and value not in self.program.reads:
                start = "0.0" if value.kind == "sum" else "1.0"
                self.add(
                    f"carry_{self.names[value]} = "
                    f"tl.full([{self.tile.rows}, 1], {start}, tl.float64)"
                )
        self.add(f"for at in range({low}, {high}, {self.tile.cols}):")
        self.depth += 1
        before = set(self.done)
        whole = high.isdigit() and int(high) % self.tile.cols == 0
        self.add_cols("at + ", high=None if whole else high)
        for value in step.values:
            self.compute(value)
        for reduction in step.reductions:
            part, kind = f"part_of_{self.names[reduction]}", held_type(reduction.dtype)
            term = self.term(reduction.arg, self.neutral(reduction), kind)
            self.add(f"{part} = {self.join(reduction, part, term)}")
        for value in step.stores:
            self.store(value)
        self.done = before
        self.depth -= 1
        for reduction in step.reductions:
            part = f"part_of_{self.names[reduction]}"
            self.add(f"{self.names[reduction]} = {self.across(reduction, part)}")
            self.done.add(reduction)
