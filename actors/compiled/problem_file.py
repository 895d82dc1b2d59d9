"""A sub-kernel as a problem file in KernelBench's contract, with inputs like those it had.

The inputs are drawn: of the sizes, strides and dtypes that the compiler gave them, and with the
spread of the values that were seen. The values themselves stay in the run's folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from kopt.actors.compiled.fragments import Fragment, NotCut

_HEAD = '''"""{doc}"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, {arguments}):
{body}


def get_inputs():
    return [
{inputs}
    ]


def get_init_inputs():
    return []
'''

_LAID_OUT = '''

def _laid_out(drawn, stride):
    """The same values in other strides."""
    return torch.empty_strided(drawn.shape, stride, dtype=drawn.dtype).copy_(drawn)
'''


def problem_source(fragment: Fragment, seen: Mapping[str, torch.Tensor]) -> str:
    """Return the text of a problem.

    Args:
        fragment: what it computes.
        seen: the values that the fragment's inputs had.

    Raises:
        NotCut: an input held values that cannot be drawn.
    """
    names = [f"x{number}" for number in range(len(fragment.inputs))]
    draws = [_draw(seen[value]) for value in fragment.inputs]
    results = ", ".join(fragment.body.results)
    lines = [*fragment.body.lines, f"return {results}"]
    text = _HEAD.format(
        doc=f"A compiled model's sub-kernel: {', '.join(fragment.operations)}.",
        arguments=", ".join(names),
        body="\n".join(f"        {line}" for line in lines),
        inputs="\n".join(f"        {draw}," for draw in draws),
    )
    return text + (_LAID_OUT if any("_laid_out" in draw for draw in draws) else "")


def identity_of(source: str, seen: Sequence[torch.Tensor]) -> str:
    """Return what two sub-kernels have in common that differ in their inputs' values alone."""
    computed = source.split("def get_inputs", 1)[0]
    shapes = [(tuple(t.shape), t.stride(), str(t.dtype)) for t in seen]
    return f"{computed}\n{shapes}"


def _draw(seen: torch.Tensor) -> str:
    size = tuple(seen.shape)
    text = _values(seen, size)
    dense = torch.empty(size).stride()
    if seen.stride() != dense and 0 not in seen.stride() and seen.numel() > 1:
        return f"_laid_out({text}, {seen.stride()})"
    return text


def _values(seen: torch.Tensor, size: tuple[int, ...]) -> str:
    dtype = f"dtype={seen.dtype}"
    if seen.is_complex():
        raise NotCut("an input of it is complex")
    if seen.numel() == 0:
        return f"torch.empty({size}, {dtype})"
    if seen.dtype == torch.bool:
        share = round(float(seen.float().mean()), 2)
        return f"torch.rand({size}) < {share}"
    if not seen.is_floating_point():
        return f"torch.randint({int(seen.min())}, {int(seen.max()) + 1}, {size}, {dtype})"
    values = seen.detach().double()
    if not bool(torch.isfinite(values).all()):
        raise NotCut("an input of it holds values that are not finite")
    low, high = float(values.min()), float(values.max())
    if low == high:
        # Weights as they were made are all ones or zeros; who reads them must not be told so.
        spread = _round(0.1 * max(1.0, abs(low)))
        return f"torch.rand({size}).mul({spread!r}).add({_round(low)!r}).to({seen.dtype})"
    if low >= 0:
        return f"torch.rand({size}).mul({_round(high)!r}).to({seen.dtype})"
    mean, spread = _round(float(values.mean())), _round(float(values.std(correction=0)))
    if abs(mean) < 0.05 * spread:
        return f"torch.randn({size}).mul({spread!r}).to({seen.dtype})"
    return f"torch.randn({size}).mul({spread!r}).add({mean!r}).to({seen.dtype})"


def _round(value: float) -> float:
    return float(f"{value:.2g}")
