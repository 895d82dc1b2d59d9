"""Making an exported graph functional where that is plain to see, keeping whole operations.

torch's own functionalisation takes batch norms apart and turns slices into scatters; most models
need no more than `relu_` as `relu`, so that is tried first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import fx

from kopt.actors.rewriter.graph import aten, fake_mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What forward changes in the module: `attribute += amount`."""

    attribute: str
    """How a buffer of the module is reached."""
    amount: int


def functionalise(module: fx.GraphModule, attributes: dict[str, str]) -> tuple[Effect, ...] | None:
    """Replace in-place operations in the graph by plain ones.

    Args:
        module: an exported graph; changed in place.
        attributes: placeholders that are tensors of the module, and how they are reached.

    Returns:
        What remains to be changed in the module (counters of batch norms); None where an
        in-place operation has no plain form here: the graph is then spoilt.
    """
    effects: list[Effect] = []
    position = {node: place for place, node in enumerate(module.graph.nodes)}
    for node in list(module.graph.nodes):
        target = node.target
        if not isinstance(target, torch._ops.OpOverload) or not target._schema.is_mutable:
            continue
        changed = node.args[0]
        if not isinstance(changed, fx.Node):
            return None
        if target is aten.detach_.default:
            node.replace_all_uses_with(changed)
            module.graph.erase_node(node)
        elif _is_counter(changed, attributes):
            effects.append(Effect(attribute=attributes[changed.name], amount=int(node.args[1])))
            node.replace_all_uses_with(changed)
            module.graph.erase_node(node)
        elif not _plain(module, node, changed, position):
            return None
    return tuple(effects)


def _is_counter(changed: fx.Node, attributes: dict[str, str]) -> bool:
    """Whether all that happens to a buffer is that numbers are added (twice, if used twice)."""
    return changed.name in attributes and _only_counts(changed)


def _only_counts(node: fx.Node) -> bool:
    return all(
        user.target is aten.add_.Tensor
        and user.args[0] is node
        and isinstance(user.args[1], int)
        and _only_counts(user)
        for user in node.users
    )


def _plain(
    module: fx.GraphModule, node: fx.Node, changed: fx.Node, position: dict[fx.Node, int]
) -> bool:
    """Let later readers of what is changed read a plain operation's result; False if unsafe."""
    target = node.target
    assert isinstance(target, torch._ops.OpOverload)
    name, overload = target._schema.name.removeprefix("aten::"), target._overloadname
    plain = getattr(getattr(aten, name.removesuffix("_"), None), overload, None)
    if not name.endswith("_") or plain is None or plain._schema.is_mutable:
        return False
    if not _owns_its_memory(changed):
        return False
    # A view taken before would have to see the change too.
    if any(_aliases(user) for user in changed.users if user is not node):
        return False
    written, held = node.meta.get("val"), changed.meta.get("val")
    if not isinstance(written, torch.Tensor) or not isinstance(held, torch.Tensor):
        return False
    with module.graph.inserting_before(node):
        new = module.graph.call_function(plain, node.args, node.kwargs)
    new.meta["val"] = written
    position[new] = position[node]
    for user in list(changed.users):
        if user is not new and user is not node and position[user] > position[node]:
            user.replace_input_with(changed, new)
    node.replace_all_uses_with(new)
    module.graph.erase_node(node)
    # In place, the result keeps its dtype; the plain operation may promote.
    with fake_mode(module), torch.no_grad():
        values, named = fx.map_arg((new.args, new.kwargs), lambda arg: arg.meta["val"])
        made = plain(*values, **named)
    return bool(made.dtype == held.dtype and made.shape == held.shape)


def _owns_its_memory(node: fx.Node) -> bool:
    target = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return False
    return not _aliases(node)


def _aliases(node: fx.Node) -> bool:
    """Whether a call's result may share memory with an argument."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return True
    if any(result.alias_info is not None for result in target._schema.returns):
        return True
    # Batch norm has the tag for its running statistics; its result is always new.
    tagged = torch.Tag.maybe_aliasing_or_mutating in target.tags
    return tagged and target is not aten.batch_norm.default
