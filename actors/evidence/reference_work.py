"""The work of a problem's reference: FLOPs and bytes of one call, without computing anything.

The reference runs on fake tensors, which have shapes and no content; each operation that reaches
the dispatcher is counted. Matrix products, convolutions and attention by torch's own formulas, the
rest by `operator_costs`. Compulsory bytes are inputs and the parameters that are read, once, and
outputs, once; unfused bytes are those of every operation on its own, views being free (profiling
notes §B.1).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from kopt.actors.child.memory import DTYPES
from kopt.actors.child.module import construct, import_source, init_arguments
from kopt.actors.evidence.operator_costs import vector_flops
from kopt.actors.evidence.order import Order
from kopt.problem import INPUTS_FUNCTION, REFERENCE_CLASS

_GATHERS = frozenset({"embedding", "index_select", "gather", "index", "take"})
"""Read no more of their first tensor than they give."""
_NO_READ = frozenset(
    {"empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like"}
)
_MAKES = frozenset({"empty", "empty_strided", "new_empty", "new_empty_strided", "empty_like"})
"""Write nothing."""
_HOST_ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"
_CONVOLUTIONS = "convolution"


def reference_work(order: Order, *, folder: Path) -> dict[str, Any]:
    """Return the work of one call, in the form that `work_from_json` takes.

    Args:
        order: whose reference; its flags say what fp32 products run in.
        folder: where the source is written.

    Raises:
        Whatever the reference raises, also because it needs the content of a tensor.
    """
    # Without oneDNN, recurrent layers and products fall apart into operations that are counted.
    with (
        warnings.catch_warnings(action="ignore"),
        torch.no_grad(),
        torch.backends.mkldnn.flags(enabled=False),
    ):
        module = import_source(order.reference, name="reference", folder=folder)
        with FakeTensorMode(allow_non_fake_inputs=True):
            torch.manual_seed(order.seed)
            inputs = list(getattr(module, INPUTS_FUNCTION)())
            model = construct(
                module,
                REFERENCE_CLASS,
                init_arguments(module),
                seed=order.seed,
                mode=order.module_mode,
            )
            if order.dtype is not None:
                dtype = DTYPES[order.dtype]
                model = model.to(dtype)
                inputs = pytree.tree_map_only(
                    torch.Tensor, lambda t: t.to(dtype) if t.is_floating_point() else t, inputs
                )
            own = [*_tensors(inputs), *model.parameters(), *model.buffers()]
            counter = _Counter(order, own)
            with counter:
                out = model(*inputs)
            return counter.report(outputs=_tensors(out))


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sums over the operations of a call."""

    def __init__(self, order: Order, own: Sequence[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._order = order
        self._own = {_storage(tensor): _num_bytes(tensor) for tensor in own}
        self._read: dict[int, float] = {}
        self._kept: list[torch.Tensor] = []
        """Alive until the end, so that no storage's place is taken by another."""
        self.matrix: dict[str, float] = {}
        self.vector = 0.0
        self.unfused_bytes = 0.0

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - torch's protocol
        types: Any,  # noqa: ANN401 - torch's protocol
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operation returns
        """Run one operation, and count it."""
        del types
        given = kwargs or {}
        out = func(*args, **given)
        inputs, outputs = _tensors((args, given)), _tensors(out)
        self._kept += outputs
        name = func._schema.name.partition("::")[2]
        if not self._is_view(func, inputs, outputs):
            self._count_bytes(name, inputs, outputs)
            self._count_flops(func, name, args, given, out, inputs, outputs)
        return out

    def _is_view(
        self,
        func: Any,  # noqa: ANN401 - torch's OpOverload, which has no public type
        inputs: list[Any],
        outputs: list[Any],
    ) -> bool:
        if func.is_view or not outputs:
            return True
        if func._schema.is_mutable:
            return False
        held = {_storage(tensor) for tensor in inputs}
        return all(_storage(tensor) in held for tensor in outputs)

    def _count_bytes(
        self, name: str, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
    ) -> None:
        written = 0.0 if name in _MAKES else sum(map(_num_bytes, outputs))
        read = 0.0
        for place, tensor in enumerate([] if name in _NO_READ else inputs):
            size = _num_bytes(tensor)
            if place == 0 and name in _GATHERS:
                size = min(size, written)
            read += size
            storage = _storage(tensor)
            if storage in self._own:
                seen = self._read.get(storage, 0.0) + size
                self._read[storage] = min(seen, self._own[storage])
        self.unfused_bytes += read + written

    def _count_flops(
        self,
        func: Any,  # noqa: ANN401 - torch's OpOverload, which has no public type
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: object,
        inputs: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
    ) -> None:
        formula = flop_registry.get(func.overloadpacket)
        if name == _HOST_ATTENTION:
            shapes = (tuple(each.shape) for each in inputs[:3])
            flops = float(sdpa_flop_count(*shapes))  # type: ignore[no-untyped-call]
        elif formula is not None:
            flops = float(formula(*args, **kwargs, out_val=out))
        else:
            self.vector += vector_flops(func, inputs, outputs, args)
            return
        precision = self._precision(inputs[0].dtype, is_convolution=_CONVOLUTIONS in name)
        self.matrix[precision] = self.matrix.get(precision, 0.0) + flops

    def _precision(self, dtype: torch.dtype, *, is_convolution: bool) -> str:
        if dtype == torch.float32:
            tf32 = self._order.cudnn_tf32 if is_convolution else self._order.matmul_tf32
            return "tf32" if tf32 else "fp32"
        return {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float64: "fp64"}.get(
            dtype, "fp8" if dtype.itemsize == 1 else "fp32"
        )

    def report(self, *, outputs: Iterable[torch.Tensor]) -> dict[str, Any]:
        """Return the sums."""
        written = {_storage(tensor): _num_bytes(tensor) for tensor in outputs}
        compulsory = sum(self._read.values()) + sum(
            size for storage, size in written.items() if storage not in self._read
        )
        return {
            "matrix_flops": self.matrix,
            "vector_flops": self.vector,
            "bytes": compulsory,
            "unfused_bytes": max(self.unfused_bytes, compulsory),
        }


def _tensors(value: object) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _num_bytes(tensor: torch.Tensor) -> float:
    """Of its elements; an expanded tensor has no more than its storage."""
    return float(min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes()))
