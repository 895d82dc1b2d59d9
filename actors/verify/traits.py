"""Traits: what drawn inputs evidently guarantee, and what a redraw must therefore keep.

A guess from one draw: that every value is ≥ 0 may be the contract (a variance) or an accident of
`torch.rand`. A trait errs towards keeping what would break the function; families.py tries the
rest all the same and the reference says which it can take. Source: exploits §E3, classes 44, 46.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch

from kopt.actors.verify.measure import chunks

TraitKind = Literal[
    "free", "one_sided", "constant", "probabilities", "log_probabilities", "permute", "kept"
]

MAX_DISTINCT = 8
"""At most as many different values make a value set, such as {0, 1} or {-1, 1}."""
ZERO_SHARE = 0.1
"""More exact zeros than this are a pattern (triangular, sparse) and not chance."""
HEAD_ELEMENTS = 1 << 20
"""Elements looked at where a part says enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait:
    """What is kept of one input tensor."""

    kind: TraitKind
    """`free`: any sign; `one_sided`: all ≥ 0 or all ≤ 0; `constant`: one value, not 0;
    `probabilities` and `log_probabilities` along `dim`; `permute`: the values stay, their rows
    change places; `kept`: nothing may change."""
    low: float = 0.0
    high: float = 1.0
    """Least and greatest value drawn."""
    rms: float = 1.0
    """Root mean square of the values drawn."""
    dim: int = -1
    pattern: bool = False
    """Whether the places of the zeros are kept."""
    note: str = ""
    """The assumption in words, or empty where there is none worth a record."""


def trait_of(tensor: torch.Tensor) -> Trait:
    """Look at one drawn input tensor and say what a redraw must keep."""
    if tensor.numel() == 0 or tensor.is_complex() or tensor.is_quantized or tensor.is_sparse:
        return Trait(kind="kept", note="empty, complex or sparse, only its own values")
    if not tensor.is_floating_point():
        return _whole_numbers(tensor)
    if tensor.element_size() == 1:
        return Trait(kind="kept", note="eight-bit floats, only its own values")
    least, greatest = torch.aminmax(tensor)
    low, high = float(least), float(greatest)
    if not (math.isfinite(low) and math.isfinite(high)):
        return Trait(kind="kept", note="holds values that are not finite, only its own values")
    if low == high:
        if low == 0.0:
            return Trait(kind="free")
        return Trait(kind="constant", low=low, high=high)
    if _is_value_set(tensor):
        return Trait(kind="permute", note="few different values, they are kept and permuted")
    return _varying(tensor, low=low, high=high)


def permuted_dim(tensor: torch.Tensor) -> int | None:
    """Return the dimension whose rows a permutation moves: the first of more than one."""
    return next((dim for dim, size in enumerate(tensor.shape) if size > 1), None)


def _whole_numbers(tensor: torch.Tensor) -> Trait:
    if permuted_dim(tensor) is None:
        return Trait(kind="kept")
    if tensor.dim() >= 2 and _triangle(tensor):
        return Trait(kind="kept", note=f"{_triangle(tensor)} mask, only its own values")
    if sum(size > 1 for size in tensor.shape) == 1 and _is_sorted(tensor.reshape(-1)):
        return Trait(kind="kept", note="sorted, only its own values")
    return Trait(kind="permute")


def _varying(tensor: torch.Tensor, *, low: float, high: float) -> Trait:
    for dim in (-1, 1) if tensor.dim() > 2 else (-1,):
        if _are_probabilities(tensor, dim, low=low):
            return Trait(
                kind="probabilities",
                dim=dim,
                note=f"probabilities along dimension {dim}: redrawn so that they sum to 1",
            )
        if high <= 0.0 and _are_log_probabilities(tensor, dim):
            return Trait(
                kind="log_probabilities",
                dim=dim,
                note=f"log-probabilities along dimension {dim}: redrawn as such",
            )
    if _is_sorted(tensor):
        return Trait(kind="kept", note="sorted, only its own values")
    if _is_symmetric(tensor) and _triangle(tensor) != "diagonal":
        return Trait(kind="kept", note="symmetric, only its own values")
    zeros = sum(int((piece == 0).sum()) for _, (piece,) in chunks(tensor))
    pattern = zeros > ZERO_SHARE * tensor.numel()
    shape = (_triangle(tensor) or f"{zeros / tensor.numel():.0%} zeros") if pattern else ""
    if not pattern and _are_whole(tensor):
        return Trait(kind="permute", note="whole numbers, they are kept and permuted")
    norm = float(
        torch.linalg.vector_norm(tensor, dtype=torch.promote_types(tensor.dtype, torch.float32))
    )
    return Trait(
        kind="one_sided" if low >= 0.0 or high <= 0.0 else "free",
        low=low,
        high=high,
        rms=norm / math.sqrt(max(tensor.numel() - zeros, 1) if pattern else tensor.numel()),
        pattern=pattern,
        note=f"{shape}: the places of its zeros are kept" if pattern else "",
    )


def _head(tensor: torch.Tensor) -> torch.Tensor:
    """Return the first rows along dimension 0, about HEAD_ELEMENTS in all, at least one."""
    if tensor.dim() < 2:
        return tensor[:HEAD_ELEMENTS] if tensor.dim() else tensor.reshape(1)
    rows = max(1, HEAD_ELEMENTS // max(1, tensor[0].numel()))
    return tensor[:rows]


def _is_value_set(tensor: torch.Tensor) -> bool:
    count = tensor.numel()
    sample = _head(tensor).reshape(-1)[:65_536]
    values = torch.unique(sample)
    if len(values) > min(MAX_DISTINCT, count // 4):
        return False
    return all(bool(torch.isin(piece, values).all()) for _, (piece,) in chunks(tensor))


def _are_whole(tensor: torch.Tensor) -> bool:
    return all(bool((piece == piece.round()).all()) for _, (piece,) in chunks(tensor))


def _are_probabilities(tensor: torch.Tensor, dim: int, *, low: float) -> bool:
    if low < 0.0 or tensor.dim() == 0 or tensor.shape[dim] < 2:
        return False
    sums = tensor.sum(dim, dtype=torch.promote_types(tensor.dtype, torch.float32))
    return bool(((sums - 1.0).abs() < _row_slack(tensor)).all())


def _are_log_probabilities(tensor: torch.Tensor, dim: int) -> bool:
    if tensor.dim() == 0 or tensor.shape[dim] < 2:
        return False
    rows = _head(tensor).float()
    return bool((torch.logsumexp(rows, dim).abs() < _row_slack(tensor)).all())


def _row_slack(tensor: torch.Tensor) -> float:
    return 1e-3 if tensor.element_size() >= 4 else 2e-2


def _is_sorted(tensor: torch.Tensor) -> bool:
    """Return whether every row (last dimension, at least 8) rises, or every row falls."""
    if tensor.dim() == 0 or tensor.shape[-1] < 8:
        return False
    rows = _head(tensor)
    left, right = rows[..., :-1], rows[..., 1:]
    if not bool((left != right).any()):
        return False
    return bool((left <= right).all()) or bool((left >= right).all())


def _is_symmetric(tensor: torch.Tensor) -> bool:
    matrix = _square(tensor)
    if matrix is None:
        return False
    turned = matrix.mT
    return all(torch.equal(ours, theirs) for _, (ours, theirs) in chunks(matrix, turned))


def _triangle(tensor: torch.Tensor) -> str:
    """Return `lower triangular`, `upper triangular`, `diagonal`, or empty for none of them.

    A mask may hold its triangle as zeros or as ones (True where attention is forbidden).
    """
    matrix = _square(tensor)
    if matrix is None:
        return ""
    zero_above, zero_below = _zero_side(matrix, above=True), _zero_side(matrix, above=False)
    if zero_above and zero_below:
        return "diagonal" if bool((matrix != 0).any()) else ""
    if zero_above or zero_below:
        return "lower triangular" if zero_above else "upper triangular"
    if matrix.dtype is torch.bool and (
        _zero_side(~matrix, above=True) or _zero_side(~matrix, above=False)
    ):
        return "triangular"
    return ""


def _zero_side(matrix: torch.Tensor, *, above: bool) -> bool:
    """Return whether all strictly above (or below) the diagonal is 0, a block of rows at a time."""
    step = max(1, HEAD_ELEMENTS // matrix.shape[1])
    for first in range(0, matrix.shape[0], step):
        block = matrix[first : first + step]
        side = block.triu(first + 1) if above else block.tril(first - 1)
        if bool((side != 0).any()):
            return False
    return True


def _square(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the first matrix of the last two dimensions where it is square, at least 4 by 4."""
    if tensor.dim() < 2 or tensor.shape[-1] != tensor.shape[-2] or tensor.shape[-1] < 4:
        return None
    while tensor.dim() > 2:
        tensor = tensor[0]
    return tensor
