"""Loss functions as formulas. `reduction`: 0 leaves the elements, 1 averages, 2 sums."""

from __future__ import annotations

from kopt.actors.rewriter.codegen.formula import Expr
from kopt.actors.rewriter.codegen.ir import Unsupported, broadcast
from kopt.actors.rewriter.codegen.lower.table import Context, lowers


def _reduced(loss: Expr, reduction: int) -> Expr:
    if reduction == 0:
        return loss
    return loss.mean(()) if reduction == 1 else loss.reduce("sum", ())


@lowers("aten.mse_loss.default")
def _(context: Context, x: Expr, target: Expr, reduction: int = 1) -> Expr:
    difference = x - target
    return _reduced(difference * difference, reduction)


@lowers("aten.l1_loss.default")
def _(context: Context, x: Expr, target: Expr, reduction: int = 1) -> Expr:
    return _reduced((x - target).unary("abs"), reduction)


@lowers("aten.smooth_l1_loss.default")
def _(context: Context, x: Expr, target: Expr, reduction: int = 1, beta: float = 1.0) -> Expr:
    size = (x - target).unary("abs")
    if beta == 0:
        return _reduced(size, reduction)
    near = 0.5 * size * size / float(beta)
    loss = size.compare("lt", float(beta)).where(near, size - 0.5 * float(beta))
    return _reduced(loss, reduction)


@lowers("aten.huber_loss.default")
def _(context: Context, x: Expr, target: Expr, reduction: int = 1, delta: float = 1.0) -> Expr:
    size = (x - target).unary("abs")
    far = float(delta) * (size - 0.5 * float(delta))
    loss = size.compare("le", float(delta)).where(0.5 * size * size, far)
    return _reduced(loss, reduction)


@lowers("aten.soft_margin_loss.default")
def _(context: Context, x: Expr, target: Expr, reduction: int = 1) -> Expr:
    return _reduced((-(x * target)).unary("exp").unary("log1p"), reduction)


@lowers("aten.kl_div.default")
def _(
    context: Context, x: Expr, target: Expr, reduction: int = 1, *, log_target: bool = False
) -> Expr:
    if log_target:
        return _reduced(target.unary("exp") * (target - x), reduction)
    # xlogy: 0 where the target is 0, though its logarithm is not finite.
    entropy = target.compare("eq", 0.0).where(0.0, target * target.unary("log"))
    return _reduced(entropy - target * x, reduction)


@lowers("aten.xlogy.Tensor")
def _(context: Context, x: Expr, y: Expr) -> Expr:
    product = x.compare("eq", 0.0).where(0.0, x * y.unary("log"))
    return y.compare("ne", y).where(y, product)


@lowers("aten.binary_cross_entropy.default")
def _(
    context: Context, x: Expr, target: Expr, weight: Expr | None = None, reduction: int = 1
) -> Expr:
    # torch bounds both logarithms by -100.
    yes = x.unary("log").maximum(-100.0)
    no = (-x).unary("log1p").maximum(-100.0)
    loss = (target - 1.0) * no - target * yes
    return _reduced(loss if weight is None else loss * weight, reduction)


@lowers("aten.binary_cross_entropy_with_logits.default")
def _(
    context: Context,
    x: Expr,
    target: Expr,
    weight: Expr | None = None,
    pos_weight: Expr | None = None,
    reduction: int = 1,
) -> Expr:
    # log(sigmoid(x)) = min(x, 0) - log1p(exp(-|x|))
    log_sigmoid = x.minimum(0.0) - (-x.unary("abs")).unary("exp").unary("log1p")
    scale = 1.0 if pos_weight is None else (pos_weight - 1.0) * target + 1.0
    loss = (1.0 - target) * x - log_sigmoid * scale
    return _reduced(loss if weight is None else loss * weight, reduction)


@lowers("aten.hinge_embedding_loss.default")
def _(context: Context, x: Expr, target: Expr, margin: float = 1.0, reduction: int = 1) -> Expr:
    apart = target.compare("eq", -1.0).where((float(margin) - x).maximum(0.0), 0.0)
    close = target.compare("eq", 1.0).where(x, 0.0)
    return _reduced(apart + close, reduction)


@lowers("aten.margin_ranking_loss.default")
def _(
    context: Context,
    first: Expr,
    second: Expr,
    target: Expr,
    margin: float = 0.0,
    reduction: int = 1,
) -> Expr:
    loss = (-target * (first - second) + float(margin)).maximum(0.0)
    return _reduced(loss, reduction)


@lowers("aten.triplet_margin_loss.default")
def _(
    context: Context,
    anchor: Expr,
    positive: Expr,
    negative: Expr,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,  # noqa: FBT001, FBT002 -- ATen's own signature
    reduction: int = 1,
) -> Expr:
    near, far = _distance(anchor, positive, p, eps), _distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(_distance(positive, negative, p, eps))
    return _reduced((near - far + float(margin)).maximum(0.0), reduction)


@lowers("aten.pairwise_distance.default")
def _(
    context: Context,
    x: Expr,
    y: Expr,
    p: float = 2.0,
    eps: float = 1e-6,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> Expr:
    return _distance(x, y, p, eps).reshape(context.out_shape)


def _distance(x: Expr, y: Expr, p: float, eps: float) -> Expr:
    difference = x - y + float(eps)
    if p == 1:
        return difference.unary("abs").reduce("sum", (-1,))
    if p != 2:
        raise Unsupported("a distance that is neither l1 nor l2")
    return (difference * difference).reduce("sum", (-1,)).unary("sqrt")


def _cosine(x: Expr, y: Expr, dim: int, eps: float) -> Expr:
    dot = (x * y).reduce("sum", (dim,))
    sizes = [(v * v).reduce("sum", (dim,)).unary("sqrt").maximum(float(eps)) for v in (x, y)]
    return dot / (sizes[0] * sizes[1])


@lowers("aten.cosine_similarity.default")
def _(context: Context, x: Expr, y: Expr, dim: int = 1, eps: float = 1e-8) -> Expr:
    if x.shape != y.shape:
        rank = max(len(x.shape), len(y.shape))
        shape = broadcast([x.shape, y.shape])
        x, y = x.expand(shape), y.expand(shape)
        dim %= rank
    return _cosine(x, y, dim, eps)


@lowers("aten.cosine_embedding_loss.default")
def _(
    context: Context,
    first: Expr,
    second: Expr,
    target: Expr,
    margin: float = 0.0,
    reduction: int = 1,
) -> Expr:
    # torch adds 1e-12 to both squared norms here, and to no other cosine.
    sizes = [(v * v).reduce("sum", (-1,)) + 1e-12 for v in (first, second)]
    cosine = (first * second).reduce("sum", (-1,)) / (sizes[0] * sizes[1]).unary("sqrt")
    apart = target.compare("eq", -1).where((cosine - float(margin)).maximum(0.0), 0.0)
    close = target.compare("eq", 1).where(1.0 - cosine, 0.0)
    return _reduced(apart + close, reduction)
