"""What the code generator hands to the one who writes the file."""

from __future__ import annotations

from dataclasses import dataclass

from torch import fx


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedKernel:
    """Generated code for a region of a graph."""

    nodes: tuple[fx.Node, ...]
    """The nodes it replaces, in the graph's order."""
    inputs: tuple[fx.Node, ...]
    """The nodes it reads, in the order of the function's parameters."""
    outputs: tuple[fx.Node, ...]
    """The nodes among `nodes` whose values it gives (shape and dtype as in their meta)."""
    name: str
    """Name of the Python function that `definition` defines."""
    definition: str
    """Module-level Python source; needs `imports` and, for C++, `cpp_loader_source()` before it."""
    call: str
    """One Python statement with a {field} for each input and output, by node name."""
    imports: tuple[str, ...]
    """Lines such as `import torch` that the definition needs."""
    language: str
    """`cpp` or `triton`."""
    seconds: float = 0.0
    """Estimated time, where that is more than reading the inputs and writing the outputs."""
