"""Products of products: multiplied in the cheaper order."""

from __future__ import annotations

from torch import fx

from kopt.actors.rewriter.graph import Builder, aten, is_call, shape
from kopt.actors.rewriter.rules.linear_reduce import linear
from kopt.actors.rewriter.rules.rule import rule

PRODUCTS = (aten.matmul.default, aten.bmm.default)


@rule(aten.linear.default)
def linear_linear(make: Builder, node: fx.Node) -> fx.Node | None:
    """(x·Vᵀ + a)·Wᵀ + b = x·(W·V)ᵀ + (W·a + b), with nothing between the two.

    The same as (A·B)·v = A·(B·v). Source: proved as R25.
    """
    outer = linear(node)
    inner = None if outer is None else linear(outer.x)
    if outer is None or inner is None:
        return None
    turned = make(aten.permute.default, inner.weight, [1, 0])
    both = make(aten.linear.default, outer.weight, turned, name="both_weights")
    bias = outer.bias
    if inner.bias is not None:
        bias = make(aten.linear.default, inner.bias, outer.weight, bias, name="both_biases")
    return make(aten.linear.default, inner.x, both, bias)


@rule(aten.linear.default)
def linear_of_product(make: Builder, node: fx.Node) -> fx.Node | None:
    """x·(A·Bᵀ)ᵀ = (x·B)·Aᵀ: a weight that is itself a product need not be formed."""
    outer = linear(node)
    if outer is None:
        return None
    turned = is_call(outer.weight, aten.permute.default)
    product = linear(outer.weight.args[0] if turned else outer.weight)
    if product is None or product.bias is not None or len(shape(product.x)) != 2:
        return None
    a, b = product.x, product.weight
    if turned:  # x·(A·Bᵀ) = (x·A)·Bᵀ
        a, b = b, a
    inner = make(aten.linear.default, outer.x, make(aten.permute.default, b, [1, 0]))
    return make(aten.linear.default, inner, a, outer.bias)


@rule(*PRODUCTS)
def matmul_chain(make: Builder, node: fx.Node) -> fx.Node | None:
    """(A·B)·C = A·(B·C) for stacks of matrices, whichever costs less."""
    left, right = node.args
    rank = len(shape(node))
    if is_call(left, *PRODUCTS):
        a, b = left.args  # type: ignore[union-attr]
        if _stacks(a, b, right, rank=rank):
            return make.like(node, a, make.like(node, b, right))
    if is_call(right, *PRODUCTS):
        b, c = right.args  # type: ignore[union-attr]
        if _stacks(left, b, c, rank=rank):
            return make.like(node, make.like(node, left, b), c)
    return None


@rule(aten.linear.default)
def linear_of_matmul(make: Builder, node: fx.Node) -> fx.Node | None:
    """(A·B)·Wᵀ = A·(B·Wᵀ) for stacks of matrices and one weight, whichever costs less."""
    outer = linear(node)
    if outer is None or outer.bias is not None or not is_call(outer.x, *PRODUCTS):
        return None
    a, b = outer.x.args
    if not _stacks(a, b, rank=len(shape(node))):
        return None
    return make.like(outer.x, a, make(aten.linear.default, b, outer.weight))


@rule(*PRODUCTS)
def matmul_of_linear(make: Builder, node: fx.Node) -> fx.Node | None:
    """A·(B·Wᵀ) = (A·B)·Wᵀ for stacks of matrices and one weight, whichever costs less."""
    a, right = node.args
    inner = linear(right)
    if inner is None or inner.bias is not None:
        return None
    if not _stacks(a, inner.x, rank=len(shape(node))):
        return None
    return make(aten.linear.default, make.like(node, a, inner.x), inner.weight)


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
