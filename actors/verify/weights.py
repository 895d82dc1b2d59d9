"""Weights: a second state that no default hides, and whose tensors belong to whose.

Source: exploits classes 17, 44, F3 and §E9; KernelBench notes C4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from kopt.identity import derived_seed

BIAS_STD = 0.1
"""Least deviation of a redrawn bias: large enough to be seen, small enough to disturb nothing."""
LOW, HIGH = 0.5, 1.5
"""Range of what multiplies a constant that is not 0."""


class StateEntry(NamedTuple):
    """One tensor of a module's state_dict, described."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """Such as `float32`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMatch:
    """Which reference tensor each tensor of the candidate takes its values from."""

    sources: dict[str, str] | None
    """Candidate's name to reference's name; None where they cannot be matched."""
    reason: str = ""
    """One line: why not; or, where matched, how (`by name`, `by order`) and what is left over."""


def randomise_parameters(
    state: Mapping[str, torch.Tensor],
    *,
    seed: int,
    parameters: Collection[str] | None = None,
) -> dict[str, torch.Tensor]:
    """Return a second state: same names, shapes, dtypes and devices, other values.

    Constant ones (norm weights) become ±U(0.5, 1.5), constant zeros (biases) small normals,
    running means normal, running variances U(0.5, 1.5); other floating tensors are redrawn
    normal with the mean and deviation they had, keeping a one-sided sign and exact zeros.
    Complex numbers, integers, bools, counters, masks, tables and tensors that are not finite are
    kept. Varying tensors that were equal (tied weights) stay equal.

    Args:
        state: the reference's state_dict; not changed.
        seed: secret.
        parameters: names that are parameters; the other floating tensors are buffers, of which
            only running statistics change. None: judged by name and content.
    """
    second: dict[str, torch.Tensor] = {}
    drawn: dict[tuple[object, ...], list[str]] = {}
    for name, tensor in state.items():
        if not tensor.is_floating_point() or not tensor.numel() or not _finite(tensor):
            second[name] = tensor.clone()
            continue
        constant = bool((tensor == tensor.reshape(-1)[0]).all())
        twins = drawn.setdefault((tuple(tensor.shape), tensor.dtype, tensor.device), [])
        twin = None if constant else _first_equal(tensor, state=state, names=twins)
        if twin is not None:
            second[name] = second[twin].clone()
            continue
        kept = name not in parameters if parameters is not None else _looks_structural(tensor)
        generator = torch.Generator(device=tensor.device)
        generator.manual_seed(derived_seed(seed, "weights", name))
        second[name] = _redraw(tensor, name=name, constant=constant, kept=kept, generator=generator)
        if not constant:
            twins.append(name)
    return second


def _redraw(
    tensor: torch.Tensor, *, name: str, constant: bool, kept: bool, generator: torch.Generator
) -> torch.Tensor:
    last = name.rpartition(".")[2]
    values = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    if last == "running_var":
        return values.uniform_(LOW, HIGH, generator=generator)
    if last == "running_mean":
        return values.normal_(0.0, 0.5, generator=generator)
    if kept:
        return tensor.clone()
    if constant:
        value = float(tensor.reshape(-1)[0])
        if value == 0.0:
            return values.normal_(0.0, BIAS_STD, generator=generator)
        values.uniform_(LOW, HIGH, generator=generator).mul_(value)
        if value == 1.0 and last == "weight" and tensor.dim() == 1:
            # A norm's weight may have either sign; another scale might go into a root or a log.
            values.mul_(_signs(tensor, generator))
        return values
    wide = tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
    mean, std = float(wide.mean()), float(wide.std(correction=0))
    if last.endswith("bias"):
        std = max(std, BIAS_STD)
    values.normal_(mean, std, generator=generator)
    if not last.endswith("bias") and bool((tensor >= 0).all()):
        values.abs_()
    elif not last.endswith("bias") and bool((tensor <= 0).all()):
        values.abs_().neg_()
    return values.mul_(tensor != 0)


def _signs(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    flips = torch.rand(tensor.shape, device=tensor.device, generator=generator) < 0.5
    return torch.where(flips, -1.0, 1.0).to(tensor.dtype)


def _finite(tensor: torch.Tensor) -> bool:
    """Return whether every value is finite, and small enough that their sum is (no garbage)."""
    wide = tensor.double() if tensor.dtype == torch.float64 else tensor.float()
    return bool(torch.isfinite(wide.abs().sum()))


def _first_equal(
    tensor: torch.Tensor, *, state: Mapping[str, torch.Tensor], names: Sequence[str]
) -> str | None:
    """Return the first of the names whose tensor is equal to this one."""
    return next((name for name in names if torch.equal(state[name], tensor)), None)


def _looks_structural(tensor: torch.Tensor) -> bool:
    """Return whether a floating tensor looks made by rule: a mask of 0 and 1, or a ramp."""
    zeros_and_ones = bool(((tensor == 0) | (tensor == 1)).all())
    if zeros_and_ones and bool((tensor == 0).any()) and bool((tensor == 1).any()):
        return True
    if tensor.dim() != 1 or tensor.numel() < 3:
        return False
    steps = tensor.diff()
    return bool((steps > 0).all()) or bool((steps < 0).all())


def match_state(reference: Sequence[StateEntry], *, candidate: Sequence[StateEntry]) -> StateMatch:
    """Match the tensors of a candidate to the reference's.

    By name first; floating ones that are left over by order where the sequences of shapes and
    dtypes agree, or by shape where every shape is unique. A candidate may lack tensors (dead
    ones) and may have more: integers at any time, floating ones where none of the reference's
    is left over. A name with another shape or dtype, or leftovers that fit neither way, is no
    match.
    """
    known = {entry.name: entry for entry in reference}
    sources: dict[str, str] = {}
    for entry in candidate:
        twin = known.get(entry.name)
        if twin is None:
            continue
        if (twin.shape, twin.dtype) != (entry.shape, entry.dtype):
            reason = f"{_text(entry)} differs from the reference's {_text(twin)}"
            return StateMatch(sources=None, reason=reason)
        sources[entry.name] = entry.name
    ours = [entry for entry in candidate if entry.name not in sources]
    theirs = [entry for entry in reference if entry.name not in sources]
    float_ours = [entry for entry in ours if _is_floating(entry)]
    float_theirs = [entry for entry in theirs if _is_floating(entry)]
    how = "by name"
    if float_ours and float_theirs:
        pairs = _pairs_by_order(float_ours, float_theirs) or _pairs_by_shape(
            float_ours, float_theirs
        )
        if pairs is None:
            return StateMatch(
                sources=None,
                reason=f"no weights for {_listed(float_ours)}: give it the reference's name, "
                f"shape and dtype; not used are {_listed(float_theirs)}",
            )
        by_order = len(float_ours) == len(float_theirs) and _kinds(float_ours) == _kinds(
            float_theirs
        )
        how = ("by name, then " if sources else "") + ("by order" if by_order else "by shape")
        sources |= pairs
    used = set(sources.values())
    unused = [entry for entry in theirs if entry.name not in used]
    own = [entry for entry in ours if entry.name not in sources]
    notes = [f"{len(sources)} of {len(reference)} tensors {how}"]
    if unused:
        notes.append(f"not used: {_listed(unused)}")
    if own:
        notes.append(f"the candidate's own: {_listed(own)}")
    return StateMatch(sources=sources, reason="; ".join(notes))


def _kinds(entries: Sequence[StateEntry]) -> list[tuple[tuple[int, ...], str]]:
    return [(entry.shape, entry.dtype) for entry in entries]


def _pairs_by_order(
    ours: Sequence[StateEntry], theirs: Sequence[StateEntry]
) -> dict[str, str] | None:
    if _kinds(ours) != _kinds(theirs):
        return None
    return {mine.name: other.name for mine, other in zip(ours, theirs, strict=True)}


def _pairs_by_shape(
    ours: Sequence[StateEntry], theirs: Sequence[StateEntry]
) -> dict[str, str] | None:
    mine, other = _kinds(ours), _kinds(theirs)
    if any(mine.count(kind) != 1 or other.count(kind) != 1 for kind in mine):
        return None
    return {
        entry.name: theirs[other.index(kind)].name for entry, kind in zip(ours, mine, strict=True)
    }


def _is_floating(entry: StateEntry) -> bool:
    return entry.dtype.startswith(("float", "bfloat", "complex"))


def _text(entry: StateEntry) -> str:
    return f"{entry.name} ({entry.dtype} {entry.shape})"


def _listed(entries: Sequence[StateEntry]) -> str:
    shown = ", ".join(_text(entry) for entry in entries[:4])
    return shown if len(entries) <= 4 else f"{shown} and {len(entries) - 4} more"
