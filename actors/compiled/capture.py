"""What torch.compile made of a model: its graphs, output modules, arguments and results.

Hooked is the one place where Inductor turns a lowered graph into a module: there the graph, the
buffers with the operation that each is the value of, and the live module (whose constants a plain
import of its text has not) are all at hand. Source: profiling notes §F.1, §F.3 and §F.7.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import fx, nn

from kopt.compiled.output_code import OutputCode, read_output_code

Call = Callable[[list[Any]], Any]
"""Of an output module: it takes its arguments as a list, which it empties, and gives a tuple."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A value that the compiled code keeps in memory."""

    origin: str | None
    """The graph's node that it is the value of; None for what is no operation of the model, such
    as one half of a split reduction."""
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    @property
    def num_bytes(self) -> int:
        """Bytes of its elements."""
        count = 1
        for each in self.size:
            count *= each
        return count * self.dtype.itemsize


@dataclass(slots=True, kw_only=True)
class Piece:
    """One compiled graph: the artefact that is taken apart."""

    source: str
    """Inductor's output module, as text."""
    code: OutputCode
    module: ModuleType
    """The same, live, with its constants."""
    call: Call
    """Of the live module, without what records it."""
    graph: fx.GraphModule
    """What it computes: ATen operations after Inductor's passes."""
    buffers: Mapping[str, Buffer]
    """Every value by name, those of arguments and constants included."""
    arguments: list[Any] = field(default_factory=list)
    """Of the last call: the tensors themselves, in the order of `code.arguments`."""
    results: tuple[Any, ...] = ()
    """Of the last call."""

    @property
    def constants(self) -> dict[str, torch.Tensor]:
        """The tensors that the live module holds."""
        held = vars(self.module)
        return {
            name: held[name]
            for name in self.code.constants
            if isinstance(held.get(name), torch.Tensor)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A compiled model."""

    model: nn.Module
    compiled: Callable[..., Any]
    pieces: tuple[Piece, ...]
    """In the order of their compilation; several where the graph breaks."""
    breaks: tuple[str, ...]
    """Why the graph broke, a line for each reason."""
    result: Any
    """Of the last call: what forward gives."""


_SETTINGS: dict[str, Any] = {
    "fx_graph_cache": False,  # a hit would pass by the hook; kernels themselves are cached still
    "fx_graph_remote_cache": False,
    "freezing": False,
    "cpp_wrapper": False,
    "combo_kernels": False,
    "graph_partition": False,
    "fallback_random": True,
    "triton.cudagraphs": False,
}
"""What would give an output of another form is off, whatever the user's environment says."""


def capture(model: nn.Module, arguments: Sequence[Any], *, max_autotune: bool = False) -> Captured:
    """Compile a model for inference and take note of all that Inductor makes of it.

    Args:
        model: in the mode (training or not) that it is to be run in.
        arguments: of its forward.
        max_autotune: let Inductor time templates for products and convolutions.

    Raises:
        Whatever dynamo, Inductor or a compiler raises: the model does not compile.
        ValueError: the output code cannot be read.
    """
    from torch._dynamo.utils import counters
    from torch._functorch import config as functorch_config
    from torch._inductor import config

    known = {name: value for name, value in _SETTINGS.items() if _has(config, name)}
    if max_autotune:
        known["max_autotune"] = True
    pieces: list[Piece] = []
    torch._dynamo.reset()
    counters.clear()
    with (
        torch.no_grad(),
        config.patch(known),
        functorch_config.patch(enable_autograd_cache=False),
        _hooked(pieces),
    ):
        compiled = torch.compile(model, dynamic=False)
        result = compiled(*arguments)
    return Captured(
        model=model,
        compiled=compiled,
        pieces=tuple(pieces),
        breaks=tuple(" ".join(str(why).split())[:300] for why in counters["graph_break"]),
        result=result,
    )


def run_again(captured: Captured, arguments: Sequence[Any]) -> Captured:
    """Run a captured model on other arguments of the same shapes; its pieces take note."""
    with torch.no_grad():
        result = captured.compiled(*arguments)
    return Captured(
        model=captured.model,
        compiled=captured.compiled,
        pieces=captured.pieces,
        breaks=captured.breaks,
        result=result,
    )


def _has(config: Any, name: str) -> bool:  # noqa: ANN401 - torch's config module
    for part in name.split("."):
        if not hasattr(config, part):
            return False
        config = getattr(config, part)
    return True


@contextlib.contextmanager
def _hooked(pieces: list[Piece]) -> Iterator[None]:
    """Take note of each graph that Inductor turns into a module, for a while."""
    from torch._inductor.graph import GraphLowering

    owner: Any = GraphLowering  # its method is replaced for a while
    original = owner.compile_to_module

    def compile_to_module(graph: Any) -> Any:  # noqa: ANN401 - a GraphLowering, a CompiledModule
        module = original(graph)
        piece = _piece(graph, module)
        pieces.append(piece)

        def recorded(arguments: list[Any]) -> Any:  # noqa: ANN401 - a tuple of tensors
            piece.arguments = list(arguments)
            results = piece.call(arguments)
            piece.results = tuple(results)
            return results

        module.call = recorded
        return module

    owner.compile_to_module = compile_to_module
    try:
        yield
    finally:
        owner.compile_to_module = original


def _piece(graph: Any, module: Any) -> Piece:  # noqa: ANN401 - Inductor's, not typed for others
    source = Path(module.__file__).read_text(encoding="utf-8")
    code = read_output_code(source)
    buffers = {name: _buffer(each) for name, each in graph.name_to_buffer.items()}
    known = {name: buffer for name, buffer in buffers.items() if buffer is not None}
    for node in graph.module.graph.nodes:
        held = node.meta.get("val")
        if node.op == "placeholder" and isinstance(held, torch.Tensor):
            plain = _numbers(held.shape), _numbers(held.stride())
            if None not in plain:
                known[node.name] = Buffer(
                    origin=node.name, size=plain[0], stride=plain[1], dtype=held.dtype
                )
    for name, constant in graph.constants.items():
        known[name] = Buffer(
            origin=_constant_node(graph.module, name),
            size=tuple(constant.shape),
            stride=tuple(constant.stride()),
            dtype=constant.dtype,
        )
    return Piece(
        source=source,
        code=code,
        module=module,
        call=module.call,
        graph=graph.module,
        buffers=known,
    )


def _buffer(buffer: Any) -> Buffer | None:  # noqa: ANN401 - an Inductor buffer
    """Return what is known of a buffer; None where its size is not."""
    try:
        size = _numbers(buffer.get_size())
        stride = _numbers(buffer.get_stride())
        dtype = buffer.get_dtype()
    except (AttributeError, NotImplementedError):
        return None  # several results in one: its parts are buffers too
    if size is None or stride is None:
        return None
    node = buffer.get_origin_node()
    return Buffer(origin=None if node is None else node.name, size=size, stride=stride, dtype=dtype)


def _numbers(sizes: Any) -> Any:  # noqa: ANN401 - of ints, SymInts or sympy's
    try:
        return tuple(int(each) for each in sizes)
    except (TypeError, ValueError):
        return None


def _constant_node(module: fx.GraphModule, name: str) -> str | None:
    for node in module.graph.nodes:
        if node.op == "get_attr" and node.target == name:
            return str(node.name)
    return None
