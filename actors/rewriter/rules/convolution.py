"""Reading and writing convolutions of one to three spatial dimensions, plain and transposed."""

from __future__ import annotations

from dataclasses import dataclass

from torch import fx

from kopt.actors.rewriter.graph import Aten, Builder, argument, aten, is_call, shape

CONV = (aten.conv1d.default, aten.conv2d.default, aten.conv3d.default)
TRANSPOSED = (
    aten.conv_transpose1d.default,
    aten.conv_transpose2d.input,
    aten.conv_transpose3d.input,
)
POOL = (aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A batched convolution; sequences have one entry for each spatial dimension."""

    x: fx.Node
    weight: fx.Node
    """(out, in / groups, *kernel); transposed: (in, out / groups, *kernel)."""
    bias: fx.Node | None
    transposed: bool
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    sizes: tuple[int, ...]
    """Spatial sizes of x."""
    kernel: tuple[int, ...]
    out_sizes: tuple[int, ...]
    channels: int
    """Of the result."""

    @property
    def rank(self) -> int:
        """How many spatial dimensions there are."""
        return len(self.sizes)


def convolution(node: object) -> Convolution | None:
    """Read a call as a convolution; None where it is none, or has no batch dimension."""
    if not is_call(node, *CONV, *TRANSPOSED):
        return None
    assert isinstance(node, fx.Node)
    transposed = node.target in TRANSPOSED
    x, weight = node.args[:2]
    assert isinstance(x, fx.Node)
    assert isinstance(weight, fx.Node)
    rank = len(shape(weight)) - 2
    if len(shape(x)) != rank + 2:
        return None
    return Convolution(
        x=x,
        weight=weight,
        bias=argument(node, "bias"),
        transposed=transposed,
        stride=spread(argument(node, "stride"), rank),
        padding=spread(argument(node, "padding"), rank),
        dilation=spread(argument(node, "dilation"), rank),
        groups=int(argument(node, "groups")),
        sizes=shape(x)[2:],
        kernel=shape(weight)[2:],
        out_sizes=shape(node)[2:],
        channels=shape(node)[1],
    )


def spread(values: Aten, rank: int) -> tuple[int, ...]:
    """Return one number for each spatial dimension; ATen takes one for all."""
    listed = [values] if isinstance(values, int) else list(values)
    return tuple(int(v) for v in (listed * rank if len(listed) == 1 else listed))


def convolve(
    make: Builder,
    x: fx.Node,
    weight: fx.Node,
    bias: fx.Node | None,
    *,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> fx.Node:
    """Add a plain convolution."""
    target = CONV[len(stride) - 1]
    lists = (list(stride), list(padding), list(dilation))
    return make(target, x, weight, bias, *lists, groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragePool:
    """An average over windows that lie within the input, every one of full size."""

    x: fx.Node
    window: tuple[int, ...]
    stride: tuple[int, ...]


def average_pool(node: fx.Node) -> AveragePool | None:
    """Read a call of avg_pool without padding; None where a window may be cut off."""
    x = node.args[0]
    assert isinstance(x, fx.Node)
    rank = POOL.index(node.target) + 1
    window = spread(argument(node, "kernel_size"), rank)
    stride = spread(argument(node, "stride") or window, rank)
    if any(spread(argument(node, "padding"), rank)):
        return None
    if rank > 1 and argument(node, "divisor_override") is not None:
        return None
    sizes, out_sizes = shape(x)[-rank:], shape(node)[-rank:]
    if argument(node, "ceil_mode") and any(
        (out - 1) * step + w > size
        for out, step, w, size in zip(out_sizes, stride, window, sizes, strict=True)
    ):
        return None
    return AveragePool(x=x, window=window, stride=stride)


def box_filtered(
    make: Builder, weight: fx.Node, *, window: tuple[int, ...], step: tuple[int, ...]
) -> fx.Node:
    """Average shifted copies of a kernel: out[u] = mean over a < window of w[u - a·step].

    Args:
        make: adds the calls.
        weight: (_, _, *kernel).
        window: copies along each spatial dimension.
        step: taps between two copies.

    Returns:
        (_, _, *(kernel + (window - 1)·step)).
    """
    rank = len(window)
    if all(s == 1 for s in step):
        pads = [w - 1 for w in reversed(window) for _ in range(2)]
        padded = make(aten.pad.default, weight, pads)
        # Unbatched pooling takes (channels, *spatial) for one to three dimensions alike.
        return make(POOL[rank - 1], padded, list(window), [1] * rank, name="pooled_weight")
    for place in range(rank):
        if window[place] == 1:
            continue
        reach = (window[place] - 1) * step[place]
        total: fx.Node | None = None
        for copy in range(window[place]):
            before = copy * step[place]
            pads = [0] * (2 * (rank - 1 - place)) + [before, reach - before]
            shifted = make(aten.pad.default, weight, pads)
            total = shifted if total is None else make(aten.add.Tensor, total, shifted)
        assert total is not None
        weight = make(aten.mul.Tensor, total, 1.0 / window[place], name="pooled_weight")
    return weight
