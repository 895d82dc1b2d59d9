"""What the code generator hands to the one who writes the file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

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


@dataclass(slots=True)
class SharedDefinitions:
    """The functions of one file: kernels of the same code share the first one's."""

    stem: str
    """Names are `<stem>_0`, `<stem>_1`, …."""
    _names: dict[str, str] = field(default_factory=dict)
    """Definition without its name to its name."""

    @property
    def next_name(self) -> str:
        """The name that the next kernel is written under; taken by `shared` if it is new."""
        return f"{self.stem}_{len(self._names)}"

    def shared(self, kernel: FusedKernel) -> FusedKernel:
        """Return a kernel that was written under `next_name`, without its definition if it has one.

        Args:
            kernel: that its name appears in nowhere but as the function's.
        """
        name = kernel.name
        key = kernel.definition.replace(name, self.stem)
        known = self._names.setdefault(key, name)
        if known == name:
            return kernel
        call = kernel.call.replace(f" {name}(", f" {known}(")
        return replace(kernel, name=known, definition="", call=call)
