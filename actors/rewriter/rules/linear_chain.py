"""Products of products: multiplied in the cheaper order."""

from __future__ import annotations

from torch import fx

from kopt.actors.rewriter.graph import Builder, aten, is_call, shape
from kopt.actors.rewriter.rules.linear_reduce import linear_parts
from kopt.actors.rewriter.rules.rule import rule

PRODUCTS = (aten.matmul.default, aten.bmm.default)


@rule(aten.linear.default)
def linear_linear(make: Builder, node: fx.Node) -> fx.Node | None:
    """(x·Vᵀ + a)·Wᵀ + b = x·(W·V)ᵀ + (W·a + b), with nothing between the two.

    The same as (A·B)·v = A·(B·v). Source: proved as R25.
    """
    inner, weight, bias = linear_parts(node)
    if not is_call(inner, aten.linear.default):
        return None
    x, first, first_bias = linear_parts(inner)
    if len(shape(weight)) != 2 or len(shape(first)) != 2:
        return None
    both = make(
        aten.linear.default, weight, make(aten.permute.default, first, [1, 0]), name="both_weights"
    )
    if first_bias is not None:
        if len(shape(first_bias)) != 1:
            return None
        bias = make(aten.linear.default, first_bias, weight, bias, name="both_biases")
    return make(aten.linear.default, x, both, bias)


@rule(aten.linear.default)
def linear_of_product(make: Builder, node: fx.Node) -> fx.Node | None:
    """x·(A·Bᵀ)ᵀ = (x·B)·Aᵀ: a weight that is itself a product need not be formed."""
    x, weight, bias = linear_parts(node)
    turned = is_call(weight, aten.permute.default)
    product = weight.args[0] if turned else weight
    if not is_call(product, aten.linear.default):
        return None
    assert isinstance(product, fx.Node)
    a, b, extra = linear_parts(product)
    if extra is not None or len(shape(a)) != 2 or len(shape(b)) != 2:
        return None
    if turned:  # x·(A·Bᵀ) = (x·A)·Bᵀ
        a, b = b, a
    inner = make(aten.linear.default, x, make(aten.permute.default, b, [1, 0]))
    return make(aten.linear.default, inner, a, bias)


@rule(*PRODUCTS)
def matmul_chain(make: Builder, node: fx.Node) -> fx.Node | None:
    """(A·B)·C = A·(B·C) for stacks of matrices, whichever costs less."""
    left, right = node.args
    assert isinstance(left, fx.Node)
    assert isinstance(right, fx.Node)
    rank = len(shape(node))
    if is_call(left, *PRODUCTS):
        a, b = left.args
        if _stacks(a, b, right, rank=rank):
            return make(node.target, a, make(node.target, b, right))  # type: ignore[arg-type]
    if is_call(right, *PRODUCTS):
        b, c = right.args
        if _stacks(left, b, c, rank=rank):
            return make(node.target, make(node.target, left, b), c)  # type: ignore[arg-type]
    return None


@rule(aten.linear.default)
def linear_of_matmul(make: Builder, node: fx.Node) -> fx.Node | None:
    """(A·B)·Wᵀ = A·(B·Wᵀ) for stacks of matrices and one weight, whichever costs less."""
    inner, weight, bias = linear_parts(node)
    if bias is not None or not is_call(inner, *PRODUCTS):
        return None
    a, b = inner.args
    if not _stacks(a, b, rank=len(shape(node))):
        return None
    return make(inner.target, a, make(aten.linear.default, b, weight))  # type: ignore[arg-type]


@rule(*PRODUCTS)
def matmul_of_linear(make: Builder, node: fx.Node) -> fx.Node | None:
    """A·(B·Wᵀ) = (A·B)·Wᵀ for stacks of matrices and one weight, whichever costs less."""
    a, right = node.args
    if not is_call(right, aten.linear.default):
        return None
    assert isinstance(right, fx.Node)
    b, weight, bias = linear_parts(right)
    if bias is not None or not _stacks(a, b, rank=len(shape(node))):
        return None
    return make(aten.linear.default, make(node.target, a, b), weight)  # type: ignore[arg-type]


def _stacks(*nodes: object, rank: int) -> bool:
    """Whether all are stacks of matrices over the same leading dimensions, nothing broadcast."""
    leads = set()
    for node in nodes:
        assert isinstance(node, fx.Node)
        sizes = shape(node)
        if len(sizes) != rank or rank < 3:
            return False
        leads.add(sizes[:-2])
    return len(leads) == 1
