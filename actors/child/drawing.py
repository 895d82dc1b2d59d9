"""The arguments that a problem's get_inputs() draws under a seed."""

from __future__ import annotations

from types import ModuleType

import torch
from torch.utils import _pytree as pytree

from kopt.actors.child.exchange import Exchange
from kopt.actors.child.memory import DTYPES
from kopt.actors.child.module import StageFailed, argument_lists
from kopt.actors.child.plain import NotPlain, Tree
from kopt.actors.devices.base import Device


class Drawing:
    """Draws on the device where the problem lets it: gigabytes take seconds on the host.

    A problem that mixes what it makes with host tensors of its own, or with their generators,
    raises there, and draws on the host for good.
    """

    def __init__(self) -> None:
        """Try the device first."""
        self._on_device = True

    def drawn(
        self, module: ModuleType, *, device: Device | None, seed: int
    ) -> list[tuple[str, list[object]]]:
        """Return lists of arguments, each with the name of the function that gave it.

        Raises:
            StageFailed: the problem's functions are not there, or give no list.
            Whatever they raise.
        """
        if device is not None and device.name != "cpu" and self._on_device:
            torch.manual_seed(seed)
            try:
                with torch.device(device.name):
                    return argument_lists(module)
            except StageFailed:
                raise
            except torch.OutOfMemoryError:
                pass  # others have the memory: the host draws this once
            except Exception as error:
                # Of any kind, since it is the problem's own code: the host is asked next, and what
                # it raises there is what is said of the problem.
                if "CUDA error" in str(error):
                    raise  # the context is spoilt, for the host's draw too
                self._on_device = False
        torch.manual_seed(seed)
        return argument_lists(module)


def kept_arguments(
    values: list[object], name: str, exchange: Exchange, *, dtype: str | None
) -> Tree:
    """Keep a list of arguments for the supervisor to fetch; return its shape in plain words.

    Args:
        values: what `name` gave.
        name: the function of the problem, for what is said of it.
        exchange: where the tensors are kept.
        dtype: what floating tensors become; None leaves them.

    Raises:
        StageFailed: there is no tensor among them, or something that cannot be sent.
    """
    try:
        tree = exchange.keep_tree([_cast(value, dtype) for value in values])
    except NotPlain as error:
        raise StageFailed("contract", f"{name} holds {error}, not a tensor") from error
    leaves = pytree.tree_leaves(values)
    if leaves and not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
        # Without any argument it is a constant, and lint says so; text or numbers alone would be
        # taken for content that can be drawn anew.
        kinds = ", ".join(type(leaf).__name__ for leaf in leaves)
        raise StageFailed("contract", f"{name} must give at least one tensor, found {kinds}")
    return tree


def _cast(value: object, dtype: str | None) -> object:
    if isinstance(value, torch.Tensor) and dtype is not None and value.is_floating_point():
        return value.to(DTYPES[dtype])
    return value
