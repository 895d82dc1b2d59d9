"""What taking a compiled model apart gave: written by the process that did it, read by the run.

Its JSON is `compiled/<model>/apart.json` of the run folder.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from kopt.compiled.choices import Choice
from kopt.compiled.groups import Group
from kopt.compiled.kernel_text import KernelKind, KernelLanguage
from kopt.compiled.recipe import Recipe
from kopt.compiled.rewire import Layout
from kopt.errors import StoreError

Cause = Literal[
    "",
    "no_compile",
    "graph_breaks",
    "dynamic_shapes",
    "random",
    "no_generated_kernels",
    "not_stitchable",
    "timeout",
    "nothing_cut",
    "gemm_dominant",
    "conv_dominant",
    "no_improvement",
    "performance",
    "correctness",
    "crash",
]
"""Why a model is not `optimized`, in a word (DESIGN §8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryCall:
    """A call of a library in the compiled code: good already, and kept."""

    name: str
    """`extern_kernels.addmm`."""
    text: str
    needs_replacement: bool = False
    """KernelOPT's flag: never, for a library call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelNote:
    """A generated kernel of the compiled code."""

    name: str
    language: KernelLanguage
    kind: KernelKind
    launches: int
    share: float
    """Of the model's time, all its launches together, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubKernel:
    """A group of launches, and the problem that it became."""

    name: str
    group: Group
    operations: tuple[str, ...] = ()
    """ATen's names."""
    inputs: tuple[str, ...] = ()
    """Values, in the order of the problem's arguments."""
    problem: str = ""
    """Name of its problem; groups that compute the same share one. Empty where it is none."""
    kept: str = ""
    """Why it is none, and stays as the compiler made it."""
    time_us: float = 0.0
    """Of its launches in one call, the least that was seen."""
    share: float = 0.0
    """Of the whole call, 0 to 1."""
    error: float | None = None
    """Greatest difference from the reference on two seeds, over the result's scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """A model taken apart."""

    model: str
    """The problem's name."""
    torch: str = ""
    cause: Cause = ""
    """Why there is nothing to search; empty where there is."""
    reason: str = ""
    """The same in a line."""
    pieces: int = 0
    """Compiled graphs; the graph breaks where there is more than one."""
    breaks: tuple[str, ...] = ()
    recipe: Recipe | None = None
    layouts: dict[str, Layout] = field(default_factory=dict)
    """Of the values that groups take and give."""
    kernels: tuple[KernelNote, ...] = ()
    library_calls: tuple[LibraryCall, ...] = ()
    subkernels: tuple[SubKernel, ...] = ()
    choices: tuple[Choice, ...] = ()
    """Where launches could be fused or kept apart, and who decided."""
    strategist: str = ""
    """What became of the strategist's answer, in a line; empty where nobody was asked."""
    problems: dict[str, str] = field(default_factory=dict)
    """Text of each problem by its name."""
    changed: tuple[str, ...] = ()
    """Tensors of the model or of forward's arguments that a call changes."""
    compile_s: float = 0.0
    cut_s: float = 0.0
    """From the compiled model to the problems' texts."""
    call_us: float = 0.0
    """Least time of a call of the compiled graph."""
    restitched_us: float = 0.0
    """The same with a shim of ours round each original kernel."""
    is_identical: bool | None = None
    """Whether the results with those shims are the same bits; None where it was not looked at."""


_APART: TypeAdapter[Apart] = TypeAdapter(Apart)


def to_json(apart: Apart) -> dict[str, Any]:
    """Return a record as plain JSON values."""
    return asdict(apart)


def from_json(text: str | bytes, *, where: str) -> Apart:
    """Read a record.

    Raises:
        StoreError: it is none; `where` it was read is named.
    """
    try:
        return _APART.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        raise StoreError(where, f"no record of a compiled model: {first['msg']}") from None
