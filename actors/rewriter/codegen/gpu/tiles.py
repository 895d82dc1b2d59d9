"""Tile sizes and warps of a Triton kernel, by the shape of its program."""

from __future__ import annotations

from dataclasses import dataclass

from kopt.actors.rewriter.codegen.program import Program
from kopt.actors.rewriter.codegen.schedule import Schedule

NUM_PROCESSORS = 132
"""Streaming multiprocessors of a full H100 or H200; smaller parts are only filled sooner."""
TILE_ELEMENTS = 1024
"""Elements of a tile where nothing asks for more."""
LANE_TILE = 64
"""Neighbouring rows of a tile when the columns are strided: 256 bytes of float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """How a kernel is cut into programs."""

    rows: int
    """Rows of a program, a power of two."""
    cols: int
    """Columns of a step, a power of two."""
    persistent: bool
    """Whether one step holds all columns."""
    chunks: int
    """Programs that share the columns of a row."""
    chunk: int
    """Columns of each of them, a multiple of `cols`."""
    warps: int


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is not below the number."""
    return 1 << max(number - 1, 0).bit_length()


def tile(program: Program, schedule: Schedule) -> Tile:
    """Return the tile of a kernel; the schedule's wishes come first where they are not 0."""
    num_cols, num_rows = program.num_cols, program.num_rows
    if not program.has_reduction and not program.has_scan:
        block = min(schedule.gpu_block or TILE_ELEMENTS, max(power_of_two(num_rows * num_cols), 16))
        warps = schedule.gpu_warps or _warps(block)
        return Tile(rows=1, cols=block, persistent=True, chunks=1, chunk=block, warps=warps)
    full = power_of_two(num_cols)
    size = schedule.gpu_block or TILE_ELEMENTS
    if program.lane is not None:
        rows = min(LANE_TILE, power_of_two(program.lane))
        persistent = full <= 64
        cols = full if persistent else max(size // rows, 8)
        warps = schedule.gpu_warps or _warps(rows * cols)
    else:
        persistent = full <= schedule.gpu_persistent
        cols = full if persistent else max(size, 2048)
        rows = min(max(size // cols, 1), power_of_two(num_rows)) if persistent else 1
        warps = schedule.gpu_warps or _warps(rows * cols)
    blocks = -(-num_rows // rows)
    chunks, chunk = 1, -(-num_cols // cols) * cols
    if not program.has_scan and blocks < 2 * NUM_PROCESSORS and num_cols >= 8 * max(size, 2048):
        persistent = False
        if program.lane is None:
            rows, cols = 1, max(size, 2048)
            blocks = num_rows
            warps = schedule.gpu_warps or _warps(cols)
        wanted = max(1, 4 * NUM_PROCESSORS // blocks)
        chunk = -(-num_cols // (wanted * cols)) * cols
        chunks = -(-num_cols // chunk)
    return Tile(
        rows=rows, cols=cols, persistent=persistent, chunks=chunks, chunk=chunk, warps=warps
    )


def _warps(elements: int) -> int:
    """Warps so that a thread has about eight to sixteen elements of each tile."""
    return min(max(elements // 256 if elements <= 2048 else elements // 512, 1), 16)
