"""The parts of re-stitching: a model with inputs, its exported file imported, its state, bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kopt.compiled.export import exported
from kopt.problem import Problem

SEEDS = (0, 42)
MARK = "bench"


def load_subject_of(problem: Problem, *, device: str, folder: str) -> Any:  # noqa: ANN401 - a Subject
    """Return a problem's model with its weights, and its inputs of two seeds."""
    from kopt.actors.compiled.order import Order
    from kopt.actors.compiled.subject import load_subject

    return load_subject(
        Order(problem=problem, folder=folder, cache=folder, device=device, seeds=SEEDS)
    )


def import_exported(
    problem: Problem,
    recipe: Any,  # noqa: ANN401 - a Recipe
    *,
    given: int,
    folder: str,
    device: str,
) -> Any:  # noqa: ANN401 - a module
    """The exported file with no kernel replaced, imported: its ModelNew."""
    from kopt.actors.child.module import construct, import_source, init_arguments

    places = {each.path[0] for each in recipe.given} | {path[0] for path, _ in recipe.plain}
    assert len(places) == given
    text = exported(
        problem.source, recipe, [], layouts={}, num_arguments=given, mark=MARK, words=problem.name
    )
    file = import_source(text, name="stitched", folder=Path(folder))
    made = construct(file, "ModelNew", init_arguments(file), seed=SEEDS[0], mode="train")
    return made.to(device)


def state_of(model: Any) -> dict[str, Any]:  # noqa: ANN401 - a module
    """Return a copy of a module's state."""
    return {name: held.detach().clone() for name, held in model.state_dict().items()}


def set_state(model: Any, state: dict[str, Any]) -> None:  # noqa: ANN401 - a module
    """Give a module a state, in the tensors that it has."""
    import torch

    with torch.no_grad():
        for name, held in model.state_dict().items():
            held.copy_(state[name])


def cloned(tree: Any) -> Any:  # noqa: ANN401 - a tree of tensors
    """Return a copy of a tree of tensors."""
    from torch.utils import _pytree as pytree

    return pytree.tree_map(lambda each: each.clone() if hasattr(each, "clone") else each, tree)


def same_bits(left: Any, right: Any) -> bool:  # noqa: ANN401 - trees of tensors
    """Whether two trees hold the same bits."""
    import torch
    from torch.utils import _pytree as pytree

    pairs = list(zip(pytree.tree_leaves(left), pytree.tree_leaves(right), strict=True))
    return all(
        torch.equal(
            one.contiguous().view(-1).view(torch.uint8), two.contiguous().view(-1).view(torch.uint8)
        )
        and one.stride() == two.stride()
        if isinstance(one, torch.Tensor)
        else one == two
        for one, two in pairs
    )
