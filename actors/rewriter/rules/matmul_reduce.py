"""Sums over a product of matrices: sum the rows or columns first, multiply what is left."""

from __future__ import annotations

from torch import fx

from kopt.actors.rewriter.graph import Builder, argument, aten, is_call, shape
from kopt.actors.rewriter.rules.linear_chain import PRODUCTS
from kopt.actors.rewriter.rules.linear_reduce import linear
from kopt.actors.rewriter.rules.operands import reduction
from kopt.actors.rewriter.rules.reduce_terms import SUMS, finished
from kopt.actors.rewriter.rules.rule import rule


@rule(*SUMS)
def matmul_reduce(make: Builder, node: fx.Node) -> fx.Node | None:
    """Σ_j (A·B)_ij = A·(Σ_j B_j) and Σ_i (A·B)_ij = (Σ_i A_i)·B, for stacks of matrices."""
    total = reduction(node)
    product, rest = total.x, list(total.dims)
    if not is_call(product, *PRODUCTS):
        return None
    left, right = product.args
    assert isinstance(left, fx.Node)
    assert isinstance(right, fx.Node)
    rank = len(shape(product))
    if len(shape(left)) < 2 or len(shape(right)) < 2:
        return None
    if rank - 1 in rest:
        right = make.reduce(total.target, right, [len(shape(right)) - 1])
        rest.remove(rank - 1)
    elif rank - 2 in rest:
        left = make.reduce(total.target, left, [len(shape(left)) - 2])
        rest.remove(rank - 2)
    else:
        return None
    return finished(make, node, make.like(product, left, right), rest=rest)


@rule(aten.diagonal.default)
def diagonal_of_product(make: Builder, node: fx.Node) -> fx.Node | None:
    """diag(A·Bᵀ)_i = Σ_k A_ik B_ik: only the diagonal of the product is computed."""
    product = node.args[0]
    plain = (argument(node, name) == default for name, default in _DIAGONAL)
    found = linear(product) if all(plain) else None
    if found is None or found.bias is not None or shape(found.x) != shape(found.weight):
        return None
    products = make(aten.mul.Tensor, found.x, found.weight)
    return make.reduce(aten.sum.dim_IntList, products, [1], keepdim=False)


_DIAGONAL = (("offset", 0), ("dim1", 0), ("dim2", 1))


@rule(aten.linear.default, aten.matmul.default)
def diagonal_times(make: Builder, node: fx.Node) -> fx.Node | None:
    """diag(d)·M scales the rows of M, M·diag(d) its columns.

    Source: KernelBench v0.1 level 1, problem 12; proved as R23.
    """
    left, right = node.args[:2]
    is_linear = node.target is aten.linear.default
    if is_linear and argument(node, "bias") is not None:
        return None
    assert isinstance(left, fx.Node)
    assert isinstance(right, fx.Node)
    d = _diagonal(left)
    if d is not None and len(shape(right)) == 2:
        matrix = make(aten.permute.default, right, [1, 0]) if is_linear else right
        column = make(aten.reshape.default, d, [shape(d)[0], 1])
        return make(aten.mul.Tensor, column, matrix)
    if is_call(right, aten.permute.default) and is_linear:
        assert isinstance(right.args[0], fx.Node)
        right = right.args[0]  # a diagonal matrix is its own transpose
    d = _diagonal(right)
    if d is not None and len(shape(left)) >= 2:
        return make(aten.mul.Tensor, left, d)
    return None


def _diagonal(node: fx.Node) -> fx.Node | None:
    """Return d where a node is the square matrix diag(d)."""
    if is_call(node, aten.diag.default):
        offset = argument(node, "diagonal")
    elif is_call(node, aten.diag_embed.default):
        offset = argument(node, "offset")
        if argument(node, "dim1") != -2 or argument(node, "dim2") != -1:
            return None
    else:
        return None
    d = node.args[0]
    assert isinstance(d, fx.Node)
    return d if len(shape(d)) == 1 and offset == 0 else None
