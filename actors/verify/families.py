"""Input families: the problem's own inputs, redrawn so that a shortcut shows.

A family keeps what the drawn inputs evidently guarantee (a value set, rows that sum to one,
traits.py); what it changes is the distribution. A sign is kept in half of the families, since
`torch.rand` may mean it or not. Source: exploits §E3; classes 12, 22, 25, 41-44, 46, 48.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import torch

from kopt.actors.verify.measure import chunks
from kopt.actors.verify.traits import Trait, permuted_dim, trait_of
from kopt.actors.verify.trees import flatten
from kopt.identity import derived_seed

FamilyName = Literal[
    "own",
    "signed_normal",
    "shifted_scaled",
    "far_offset",
    "small_signed",
    "heavy_tail",
    "ties",
    "unit_interval",
]
FAMILIES: tuple[FamilyName, ...] = get_args(FamilyName)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSet:
    """The arguments of one forward call."""

    name: FamilyName
    values: tuple[object, ...]
    """Tensors and plain values, in the order of `get_inputs()`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyPlan:
    """What can be done with a problem's inputs; made once, used for every draw."""

    names: tuple[FamilyName, ...]
    """Families to check, `own` first. Drop one (not `own`) on which the reference raises or is
    not finite, and record it: the problem's contract excludes those values."""
    notes: tuple[str, ...]
    """Assumptions to record as checks: `input 0: sorted, only its own values`."""
    traits: tuple[Trait, ...]
    """One for each tensor leaf of the inputs, in the order of `flatten`."""


def plan_families(base: Sequence[object]) -> FamilyPlan:
    """Look at the problem's own inputs and say which families apply.

    `unit_interval` (values within the range that was drawn) is added where an input has one sign
    only. Where nothing can be redrawn, `own` is all there is.

    Args:
        base: the values of `get_inputs()`, tensors on any one device; lists, tuples and dicts
            of tensors are looked into; other values stay as they are.
    """
    leaves = _tensors(base)
    traits = tuple(trait_of(tensor) for _, tensor in leaves)
    notes = [
        f"input {path}: {trait.note}"
        for (path, _), trait in zip(leaves, traits, strict=True)
        if trait.note
    ]
    names: list[FamilyName] = ["own"]
    if any(trait.kind not in ("kept", "permute") for trait in traits):
        names += [name for name in FAMILIES if name not in ("own", "unit_interval")]
        if any(trait.kind == "one_sided" for trait in traits):
            names.append("unit_interval")
    elif leaves:
        notes.append("no floating input can be redrawn: only the problem's own draws are checked")
    return FamilyPlan(names=tuple(names), notes=tuple(notes), traits=traits)


def make_family(
    base: Sequence[object],
    *,
    plan: FamilyPlan,
    name: FamilyName,
    seed: int,
    into: Sequence[object] | None = None,
) -> InputSet:
    """Draw one input set on the device of the base tensors; the base is not changed.

    Equal arguments give equal values on one device and torch version. `own` copies the base.

    Args:
        base: the values of `get_inputs()` under a secret seed.
        plan: `plan_families` of any draw of the same problem.
        name: one of `plan.names`.
        seed: secret; also draws the family's own parameters (scale, offset, number of outliers).
        into: same structure, shapes and dtypes as the base: filled in place, so that a large
            input needs no second allocation. None allocates.

    Raises:
        ValueError: the name is not in the plan, or `into` or the plan does not fit the base.
    """
    if name not in plan.names:
        raise ValueError(f"family {name} is not in the plan; there are: {', '.join(plan.names)}")
    values = cast("Sequence[object]", _empty(list(base))) if into is None else into
    sources, targets = _tensors(base), _tensors(values)
    if not len(sources) == len(targets) == len(plan.traits):
        raise ValueError(
            f"the base has {len(sources)} tensors, `into` {len(targets)}, "
            f"the plan {len(plan.traits)}"
        )
    for (path, source), (_, target), trait in zip(sources, targets, plan.traits, strict=True):
        if (source.shape, source.dtype) != (target.shape, target.dtype):
            raise ValueError(f"input {path}: `into` has another shape or dtype than the base")
        if name == "own":
            target.copy_(source)
        else:
            _redraw(target, source=source, trait=trait, name=name, seed=seed, path=path)
    return InputSet(name=name, values=tuple(values))


def input_families(base: Sequence[object], *, seed: int) -> list[InputSet]:
    """Return every planned family of small inputs at once; `own` is first and holds the base."""
    plan = plan_families(base)
    others = [make_family(base, plan=plan, name=name, seed=seed) for name in plan.names[1:]]
    return [InputSet(name="own", values=tuple(base)), *others]


def finite(tensors: Sequence[torch.Tensor]) -> bool:
    """Return whether every value of every tensor is finite; integers and bools always are."""
    return all(
        bool(torch.isfinite(piece).all())
        for tensor in tensors
        if tensor.is_floating_point() or tensor.is_complex()
        for _, (piece,) in chunks(tensor)
    )


def _tensors(tree: Sequence[object]) -> list[tuple[str, torch.Tensor]]:
    """Return the tensor leaves as (path without its outer brackets, tensor)."""
    return [
        (path.removeprefix("[").replace("]", "", 1), leaf)
        for path, leaf in flatten(list(tree))
        if isinstance(leaf, torch.Tensor)
    ]


def _empty(tree: object) -> object:
    """Return the tree with tensors that hold nothing yet in the place of its own."""
    if isinstance(tree, torch.Tensor):
        return torch.empty_like(tree)
    if isinstance(tree, Mapping):
        return {key: _empty(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        items = [_empty(item) for item in tree]
        return tuple(items) if isinstance(tree, tuple) else items
    return tree


def _redraw(
    target: torch.Tensor,
    *,
    source: torch.Tensor,
    trait: Trait,
    name: FamilyName,
    seed: int,
    path: str,
) -> None:
    generator = torch.Generator(device=source.device)
    generator.manual_seed(derived_seed(seed, name, path))
    rng = random.Random(derived_seed(seed, name, path, "parameters"))
    match trait.kind:
        case "kept":
            target.copy_(source)
        case "permute":
            _permute(target, source=source, seed=derived_seed(seed, name, "rows"))
        case "constant":
            target.uniform_(0.5, 1.5, generator=generator).mul_(trait.low)
        case "probabilities" | "log_probabilities":
            _fill(target, trait=Trait(kind="free"), name=name, generator=generator, rng=rng)
            target.clamp_(-10.0, 10.0)  # no row may become a single 1 among zeros
            if trait.kind == "log_probabilities":
                target.sub_(torch.logsumexp(target, trait.dim, keepdim=True))
            else:
                target.exp_().div_(target.sum(trait.dim, keepdim=True))
        case "free" | "one_sided":
            _fill(target, trait=trait, name=name, generator=generator, rng=rng)
    if trait.pattern:
        target.mul_(source != 0)


def _permute(target: torch.Tensor, *, source: torch.Tensor, seed: int) -> None:
    """Move the rows. Inputs of one length move alike: lengths stay beside their sequences."""
    dim = permuted_dim(source)
    if dim is None:
        target.copy_(source)
        return
    generator = torch.Generator(device=source.device)
    generator.manual_seed(seed)
    order = torch.randperm(source.shape[dim], generator=generator, device=source.device)
    target.copy_(source.index_select(dim, order))


def _fill(
    target: torch.Tensor,
    *,
    trait: Trait,
    name: FamilyName,
    generator: torch.Generator,
    rng: random.Random,
) -> None:
    """Draw a family's values in place.

    `heavy_tail`, `ties` and `unit_interval` keep a sign that was seen; the others take either.
    """
    # float16 ends at 65504: a product of two inputs of 10 over a thousand terms is beyond it.
    narrow = target.dtype is torch.float16
    unit = 1.0 if 0.1 <= trait.rms <= 10.0 else trait.rms
    if name == "signed_normal":
        target.normal_(0.0, unit, generator=generator)
    elif name == "shifted_scaled":
        scale = unit * (rng.uniform(1.0, 2.0) if narrow else rng.uniform(2.0, 10.0))
        offset = rng.choice((-1.0, 1.0)) * rng.uniform(0.25, 1.0) * scale
        target.normal_(offset, scale, generator=generator)
    elif name == "far_offset":
        offset = unit * (rng.uniform(4.0, 8.0) if narrow else rng.uniform(50.0, 100.0))
        target.normal_(rng.choice((-1.0, 1.0)) * offset, unit, generator=generator)
    elif name == "small_signed":
        bound = unit * rng.uniform(0.5, 1.0)
        target.uniform_(-bound, bound, generator=generator)
    elif name == "heavy_tail":
        target.normal_(0.0, unit, generator=generator)
        size = unit * 10.0 ** (rng.uniform(1.0, 1.7) if narrow else rng.uniform(1.5, 3.0))
        _plant(target, size=size, count=rng.randint(1, 16), generator=generator)
        if trait.kind == "one_sided":
            _keep_sign(target, trait=trait)
    elif name == "ties":
        low, high = (trait.low, trait.high) if trait.kind == "one_sided" else (-2 * unit, 2 * unit)
        levels = rng.randint(2, 5)
        step = (high - low) / levels
        target.random_(0, levels, generator=generator).mul_(step).add_(low + step / 2)
    else:  # unit_interval
        low, high = trait.low, trait.high
        target.uniform_(0.0, 1.0, generator=generator).pow_(rng.choice((0.25, 0.5, 2.0, 4.0)))
        target.mul_(high - low).add_(low).clamp_(low, high)


def _plant(target: torch.Tensor, *, size: float, count: int, generator: torch.Generator) -> None:
    """Multiply a few elements at random places by `size`, none of them left near 0."""
    places = torch.randint(
        target.numel(), (min(count, target.numel()),), generator=generator, device=target.device
    )
    index = torch.unravel_index(places, target.shape)
    picked = target[index]
    target[index] = torch.where(picked < 0, -size, size).to(target.dtype) + picked


def _keep_sign(target: torch.Tensor, *, trait: Trait) -> None:
    if trait.low >= 0.0:
        target.abs_().add_(trait.low)
    else:
        target.abs_().neg_().add_(trait.high)
