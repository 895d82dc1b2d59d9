"""A float32 matrix product from three tf32 products, as Triton source.

Each operand is cut in two numbers that tf32 holds: x = high + low with an error of 2⁻²⁴ |x|. Then
a·b = high·high + high·low + low·high but for 2⁻²², and the tensor cores do each of the three at
their full rate. They round every sum towards zero, which adds up over a long row: so they add up
one step of the loop only, and the steps are joined by ordinary float32 additions (Ootomo and
Yokota, "Recovering single precision accuracy from Tensor Cores", 2022, §3).

The cuts are made by a kernel of their own, which also turns an operand whose columns lie together:
tensor cores read tf32 along the summed index only. A direct product cuts the operand with more rows
on its way through the registers instead, so that it is read once and never written. Only a left
operand may lie in registers: where it is the right one, the product is computed transposed.
"""

from __future__ import annotations

from dataclasses import dataclass

SPLIT_TILE = 64
"""Rows and columns of a tile of the kernel that cuts an operand."""
GROUP = 8
"""Rows of tiles that are worked on together, so that they read the same columns from the cache."""
FAR = 1 << 31
"""From here on element numbers need 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A batch of matrices with the summed index last."""

    name: str
    """The tensor in the launcher's text."""
    batch: int
    rows: int
    depth: int
    """Length of the summed index."""
    strides: tuple[int, int, int]
    """Elements to step in memory for the next matrix, row and column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductTile:
    """How a product is cut into programs."""

    rows: int
    cols: int
    depth: int
    """Of one step of the loop."""
    warps: int
    stages: int
    """Steps whose operands are on their way at a time."""
    direct: bool = False
    """Whether the operand with more rows is cut in registers."""


def padded(depth: int, tile: ProductTile) -> int:
    """Return the length of a cut operand's rows: whole steps, the rest zeros."""
    return -(-depth // tile.depth) * tile.depth


def split_source(kernel: str, operand: Operand, tile: ProductTile) -> str:
    """Return the kernel that cuts an operand; its grid is `split_grid`."""
    pitch, (item, row, col) = padded(operand.depth, tile), operand.strides
    wide = ".to(tl.int64)" if _is_far(operand, pitch) else ""
    size = SPLIT_TILE
    return f"""\
@triton.jit
def {kernel}(source, high, low):
    r = tl.program_id(0){wide} * {size} + tl.arange(0, {size})[:, None]
    c = tl.program_id(1) * {size} + tl.arange(0, {size})[None, :]
    item = tl.program_id(2){wide}
    inside = (r < {operand.rows}) & (c < {operand.depth})
    x = tl.load(source + (item * {item} + r * {row} + c * {col}), mask=inside, other=0.0)
{_cut("x", "near", "rest", depth=1)}    place = item * {operand.rows * pitch} + r * {pitch} + c
    inside = (r < {operand.rows}) & (c < {pitch})
    tl.store(high + place, near, mask=inside)
    tl.store(low + place, rest, mask=inside)


"""


def _cut(name: str, high: str, low: str, *, depth: int) -> str:
    """Return the statements that cut a value.

    Numbers that would round up to infinity, and those that are not finite, stay whole.
    """
    lines = (
        f"usual = tl.abs({name}) < 1.7e38",
        f"{high} = (({name}.to(tl.int32, bitcast=True) + 0x1000) & -8192)"
        ".to(tl.float32, bitcast=True)",
        f"{high} = tl.where(usual, {high}, {name})",
        f"{low} = tl.where(usual, {name} - {high}, 0.0)",
        f"{low} = (({low}.to(tl.int32, bitcast=True) + 0x1000) & -8192)"
        ".to(tl.float32, bitcast=True)",
    )
    return "".join(f"{'    ' * depth}{line}\n" for line in lines)


def split_grid(operand: Operand, tile: ProductTile) -> str:
    """Return the grid of `split_source`, as Python."""
    across = -(-padded(operand.depth, tile) // SPLIT_TILE)
    return f"{-(-operand.rows // SPLIT_TILE)}, {across}, {operand.batch}"


def _walk(rows: int, cols: int, tile: ProductTile, *, wide: str) -> str:
    """The lines that say which rows, columns and matrix a program of a product has."""
    tiles_r, tiles_c = -(-rows // tile.rows), -(-cols // tile.cols)
    return f"""\
    program = tl.program_id(0)
    item = tl.program_id(1){wide}
    band = program // {GROUP * tiles_c} * {GROUP}
    height = tl.minimum({tiles_r} - band, {GROUP})
    inside = program % {GROUP * tiles_c}
    r = (band + inside % height) * {tile.rows} + tl.arange(0, {tile.rows})
    c = (inside // height) * {tile.cols} + tl.arange(0, {tile.cols})
    k = tl.arange(0, {tile.depth})
"""


def _edges(rows: int, cols: int, tile: ProductTile) -> tuple[str, str, str]:
    """Rows and columns that may be read, the last ones again beyond the end, and a store's mask."""
    whole_r, whole_c = rows % tile.rows == 0, cols % tile.cols == 0
    masks = [] if whole_r else [f"(r < {rows})[:, None]"]
    masks += [] if whole_c else [f"(c < {cols})[None, :]"]
    return (
        "r" if whole_r else f"tl.minimum(r, {rows - 1})",
        "c" if whole_c else f"tl.minimum(c, {cols - 1})",
        f", mask={' & '.join(masks)}" if masks else "",
    )


def product_source(
    kernel: str, left: Operand, right: Operand, *, tile: ProductTile, has_bias: bool
) -> str:
    """Return the kernel that multiplies cut operands: left · rightᵀ (+ bias), row-major."""
    pitch = padded(left.depth, tile)
    rows, cols = left.rows, right.rows
    far = left.batch * max(rows * pitch, cols * pitch, rows * cols) >= FAR
    wide = ".to(tl.int64)" if far else ""
    row, col, guard = _edges(rows, cols, tile)
    given = "a_high, a_low, b_high, b_low, " + ("bias, out" if has_bias else "out")
    bias = f"    total += tl.load(bias + {col})[None, :]\n" if has_bias else ""
    precision = 'input_precision="tf32"'
    return f"""\
@triton.jit
def {kernel}({given}):
{_walk(rows, cols, tile, wide=wide)}\
    a_at = item * {rows * pitch} + {row}[:, None]{wide} * {pitch} + k[None, :]
    b_at = item * {cols * pitch} + {col}[None, :]{wide} * {pitch} + k[:, None]
    total = tl.zeros(({tile.rows}, {tile.cols}), tl.float32)
    for at in range(0, {pitch}, {tile.depth}):
        a1 = tl.load(a_low + (a_at + at))
        b0 = tl.load(b_high + (b_at + at))
        part = tl.dot(a1, b0, {precision})
        a0 = tl.load(a_high + (a_at + at))
        b1 = tl.load(b_low + (b_at + at))
        part = tl.dot(a0, b1, part, {precision})
        part = tl.dot(a0, b0, part, {precision})
        total += part
{bias}\
    place = item * {rows * cols} + r[:, None]{wide} * {cols} + c[None, :]
    tl.store(out + place, total{guard})


"""


def is_turned(left: Operand, right: Operand) -> bool:
    """Return whether it is the right operand that a direct product cuts in registers."""
    return right.rows >= left.rows


def direct_source(
    kernel: str, left: Operand, right: Operand, *, tile: ProductTile, has_bias: bool
) -> str:
    """Return the kernel that multiplies a cut operand and one as it lies in memory."""
    turned = is_turned(left, right)
    direct, cut = (right, left) if turned else (left, right)
    pitch, depth = padded(cut.depth, tile), cut.depth
    rows, cols = direct.rows, cut.rows
    item, row, step = direct.strides
    reach = direct.batch * max(item, rows * cols, cols * pitch)
    wide = ".to(tl.int64)" if max(reach, rows * row + depth * step) >= FAR else ""
    r, c, guard = _edges(rows, cols, tile)
    inside = "" if depth == pitch else f", mask=(at + k < {depth})[None, :], other=0.0"
    given = "b_high, b_low, source, " + ("bias, out" if has_bias else "out")
    place = f"r[:, None] + c[None, :]{wide} * {rows}"
    bias = f"    total += tl.load(bias + {r})[:, None]\n"
    if not turned:
        place = f"r[:, None]{wide} * {cols} + c[None, :]"
        bias = f"    total += tl.load(bias + {c})[None, :]\n"
    bias = bias if has_bias else ""
    precision = 'input_precision="tf32"'
    return f"""\
@triton.jit
def {kernel}({given}):
{_walk(rows, cols, tile, wide=wide)}\
    a_at = item * {item} + {r}[:, None]{wide} * {row} + k[None, :] * {step}
    b_at = item * {cols * pitch} + {c}[None, :]{wide} * {pitch} + k[:, None]
    total = tl.zeros(({tile.rows}, {tile.cols}), tl.float32)
    for at in range(0, {pitch}, {tile.depth}):
        x = tl.load(source + (a_at + at * {step}){inside})
        b0 = tl.load(b_high + (b_at + at))
        b1 = tl.load(b_low + (b_at + at))
{_cut("x", "a0", "a1", depth=2)}\
        part = tl.dot(a1, b0, {precision})
        part = tl.dot(a0, b1, part, {precision})
        part = tl.dot(a0, b0, part, {precision})
        total += part
{bias}\
    place = item * {rows * cols} + {place}
    tl.store(out + place, total{guard})


"""


def product_grid(left: Operand, right: Operand, tile: ProductTile) -> str:
    """Return the grid of `product_source` or of `direct_source`, as Python."""
    swapped = tile.direct and is_turned(left, right)
    rows, cols = (right.rows, left.rows) if swapped else (left.rows, right.rows)
    return f"{-(-rows // tile.rows) * -(-cols // tile.cols)}, {left.batch}"


def _is_far(operand: Operand, pitch: int) -> bool:
    item, row, col = operand.strides
    read = operand.batch * item + operand.rows * row + operand.depth * col
    return max(read, operand.batch * operand.rows * pitch) >= FAR
