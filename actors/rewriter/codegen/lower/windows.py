"""Pools and convolutions of single channels: every tap of the window is a shifted, strided read.

What a window reaches past the edge of is read as a number that changes nothing. A window over
computed values computes each of them again for every window it is in, so that such windows must
not overlap nor reach past the edge; those over a tensor in memory may.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

from kopt.actors.rewriter.codegen.formula import Expr
from kopt.actors.rewriter.codegen.ir import Bound, Load, Unsupported
from kopt.actors.rewriter.codegen.lower.table import Argument, Context, lowers
from kopt.actors.rewriter.codegen.lower.views import sliced

MOST_TAPS = 32
"""Elements of a window at most: each is a read of its own in the code."""


class Windows:
    """The windows of a call over the last dimensions of a tensor."""

    def __init__(
        self,
        context: Context,
        x: Expr,
        *,
        kernel: Argument,
        stride: Argument,
        padding: Argument,
        dilation: Argument = 1,
    ) -> None:
        """Read the arguments, each one number or one for each spatial dimension.

        Raises:
            Unsupported: the back end has no such reads, or the windows ask for too many.
        """
        rank = len(kernel) if isinstance(kernel, list | tuple) else len(x.shape) - 2
        self.kernel = _spread(kernel, rank)
        self.stride = _spread(stride, rank) if stride else self.kernel
        self.padding, self.dilation = _spread(padding, rank), _spread(dilation, rank)
        self._x = x
        self._first = len(x.shape) - rank
        self._sizes = context.out_shape[self._first :]
        if not context.builder.windows:
            raise Unsupported("windows on this back end")
        if prod(self.kernel) > MOST_TAPS or self._first < 1:
            raise Unsupported("a window of many elements")
        overlaps = any(k > s for k, s in zip(self.kernel, self.stride, strict=True))
        if (overlaps or self.reaches_out()) and not isinstance(x.value, Load):
            raise Unsupported("overlapping windows over computed values")

    def reaches_out(self) -> bool:
        """Whether some window reaches past the edge."""
        return any(
            self._range(place, tap) != (0, self._sizes[place])
            for place, size in enumerate(self.kernel)
            for tap in (0, size - 1)
        )

    def taps(self, fill: float) -> list[tuple[tuple[int, ...], Expr]]:
        """Return each tap that meets an element, and what it reads, over all windows.

        Args:
            fill: what a tap reads past the edge.
        """
        found = []
        for tap in product(*(range(size) for size in self.kernel)):
            read = self._tap(tap, fill)
            if read is not None:
                found.append((tap, read))
        if not found:
            raise Unsupported("windows that meet nothing")
        return found

    def _range(self, place: int, tap: int) -> tuple[int, int]:
        """Return the windows for which a tap lies inside, as first and last but one past it."""
        shift = tap * self.dilation[place] - self.padding[place]
        step, size = self.stride[place], self._x.shape[self._first + place]
        low, high = max(0, -(shift // step)), (size - 1 - shift) // step + 1
        return low, min(high, self._sizes[place])

    def _tap(self, tap: tuple[int, ...], fill: float) -> Expr | None:
        x, bounds = self._x, []
        ranges = [self._range(place, index) for place, index in enumerate(tap)]
        if any(low >= high for low, high in ranges):
            return None
        starts = [
            index * dilation - padding
            for index, dilation, padding in zip(tap, self.dilation, self.padding, strict=True)
        ]
        for place, (low, high) in enumerate(ranges):
            if (low, high) != (0, self._sizes[place]):
                bounds.append((self._first + place, low, high))
        if not bounds:
            for place, start in enumerate(starts):
                step, length = self.stride[place], self._sizes[place]
                x = sliced(x, dim=self._first + place, start=start, step=step, length=length)
            return x
        return self._bounded(starts, tuple(bounds), fill)

    def _bounded(self, starts: Sequence[int], bounds: tuple[Bound, ...], fill: float) -> Expr:
        x = self._x.value
        assert isinstance(x, Load)
        if x.bounds:
            raise Unsupported("a window over a window past the edge")
        strides, offset, shape = list(x.strides), x.offset, list(x.shape)
        for place, start in enumerate(starts):
            dim = self._first + place
            offset += start * x.strides[dim]
            strides[dim] *= self.stride[place]
            shape[dim] = self._sizes[place]
        made = self._x.builder.strided(
            x,
            strides=tuple(strides),
            offset=offset,
            shape=tuple(shape),
            bounds=bounds,
            fill=fill,
        )
        return Expr(self._x.builder, made)


def _spread(values: Argument, rank: int) -> tuple[int, ...]:
    listed = [values] if isinstance(values, int) else list(values)
    return tuple(int(v) for v in (listed * rank if len(listed) == 1 else listed))


def _joined(reads: Sequence[Expr], join: Callable[[Expr, Expr], Expr]) -> Expr:
    total = reads[0]
    for read in reads[1:]:
        total = join(total, read)
    return total


@lowers("aten.max_pool1d.default", "aten.max_pool2d.default", "aten.max_pool3d.default")
def _(
    context: Context,
    x: Expr,
    kernel_size: Argument,
    stride: Argument = (),
    padding: Argument = 0,
    dilation: Argument = 1,
    ceil_mode: bool = False,  # noqa: FBT001, FBT002 -- ATen's own signature
) -> Expr:
    if not x.dtype.is_floating_point:
        raise Unsupported("a pool of integers")
    windows = Windows(
        context, x, kernel=kernel_size, stride=stride, padding=padding, dilation=dilation
    )
    taps = windows.taps(-float("inf"))
    return _joined([read for _, read in taps], lambda a, b: a.maximum(b))


@lowers("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
def _(
    context: Context,
    x: Expr,
    kernel_size: Argument,
    stride: Argument = (),
    padding: Argument = 0,
    ceil_mode: bool = False,  # noqa: FBT001, FBT002
    count_include_pad: bool = True,  # noqa: FBT001, FBT002
    divisor_override: int | None = None,
) -> Expr:
    windows = Windows(context, x, kernel=kernel_size, stride=stride, padding=padding)
    # Windows that are cut off, or count only what is inside, have divisors of their own.
    if windows.reaches_out() and (ceil_mode or not count_include_pad):
        raise Unsupported("an average over windows of several sizes")
    total = _joined([read for _, read in windows.taps(0.0)], lambda a, b: a + b)
    return total / float(divisor_override or prod(windows.kernel))


@lowers("aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default")
def _(
    context: Context,
    x: Expr,
    weight: Expr,
    bias: Expr | None = None,
    stride: Argument = 1,
    padding: Argument = 0,
    dilation: Argument = 1,
    groups: int = 1,
) -> Expr:
    channels = weight.shape[0]
    rank = len(weight.shape) - 2
    if groups != channels or weight.shape[1] != 1 or len(x.shape) != rank + 2:
        raise Unsupported("a convolution over several channels")
    if x.shape[1] != channels or prod(weight.shape[2:]) == 1:
        raise Unsupported("a convolution over single elements")
    windows = Windows(
        context,
        x,
        kernel=weight.shape[2:],
        stride=stride,
        padding=padding,
        dilation=dilation,
    )
    terms = []
    for tap, read in windows.taps(0.0):
        factor = weight.reshape((1, channels, *weight.shape[2:]))
        for place, index in enumerate(tap):
            factor = sliced(factor, dim=2 + place, start=index, step=1, length=1)
        terms.append(read * factor)
    total = _joined(terms, lambda a, b: a + b)
    return total if bias is None else total + bias.reshape((1, channels, *[1] * rank))
