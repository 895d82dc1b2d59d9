"""Whose work a kernel or an operation is, told by its name: the candidate's, a library's, torch's.

A name proves little by itself. A kernel counts as the candidate's only if its text or its build
defines one of that name, and never where closed libraries or ATen name theirs so: a candidate may
call its own kernel as it likes, but not have cuBLAS's counted for it. What nobody claims belongs
to some package, and counts as a library's. Source: exploits 3, 53-56, §E10; names as in
`domain/profiling.md` (kernel attribution).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kopt.evidence import KernelOwner
from kopt.tools.collect.owners import base_name, owner

MEMCPY = "Memcpy"
MEMSET = "Memset"
"""Names of copies and fills, which stand beside kernels."""

_CLOSED = re.compile(
    r"cublas\w*::|cublas(?:gem|dot)|nvjet|cudnn|xmma|nccldev|ncclkernel|cusolver|cusparse::"
    r"|\b(?:maxwell|volta|turing|ampere|ada|hopper|blackwell)_[a-z]\w*?gemm_\w*\d+x\d+",
    re.IGNORECASE,
)
"""How kernels are named in libraries that come as binaries: nobody else has reason to."""
_TORCH = re.compile(rf"\bat::|\bc10::|\btorch::|at_cuda_detail|^(?:{MEMCPY}|{MEMSET})\b")
_INDUCTOR = re.compile(r"^triton_(?:poi|red|per|tem|for|spl|unk|mm|bmm|convolution|flex)\w*_")
_GENERATED = ("_helion_{}", "kernel_cutlass_{}_")
"""How Helion and CuTe derive the name of a kernel from the function it is written as; the second
is followed by its arguments' types."""

_TORCH_SPACES = frozenset(
    (
        *("aten", "prim", "prims", "rngprims", "debugprims", "inductor", "profiler", "torch"),
        *("quantized", "_quantized", "sparse", "static_runtime", "c10d", "_c10d_functional"),
    )
)
_LIBRARY_SPACES = frozenset(
    ("mkldnn", "onednn", "mkldnn_prepacked", "mkl", "xnnpack", "fbgemm", "prepacked")
)
_LIBRARY_OP = re.compile(
    r"aten::(?:(?:sparse_)?(?:addmm|mm|bmm|baddbmm|addbmm|mv|addmv|dot|vdot|ger|addr)(?:_|\b)"
    r"|_addmm_activation|_?mkldnn|_mkl|thnn_conv|_slow_conv|slow_conv|_?nnpack|_fft|_?linalg)"
)
"""ATen's operations that hand their work to a BLAS, oneDNN, LAPACK or an FFT library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a candidate may call its own."""

    names: frozenset[str] = frozenset()
    """Functions that its text defines as kernels, without namespaces."""
    symbols: frozenset[str] = frozenset()
    """Kernels of its binaries, in full and without mangling."""
    words: frozenset[str] = frozenset()
    """Every identifier of its text."""

    def define(self, name: str) -> bool:
        """Whether the candidate defines a kernel of this name, as a profiler gives it."""
        base = base_name(name)
        if name in self.symbols or base in self.names:
            return True
        helion, cute = _GENERATED
        return any(
            base == helion.format(each) or base.startswith(cute.format(each)) for each in self.names
        )

    def mention(self, name: str) -> bool:
        """Whether the candidate's text has the name, defined in a way that nobody foresaw."""
        return base_name(name) in self.words


def identifiers(text: str) -> frozenset[str]:
    """Return every identifier in a text, whatever language it is in."""
    return frozenset(re.findall(r"[A-Za-z_]\w{0,200}", text))


def kernel_owner(
    name: str, *, claims: Claims, elsewhere: Collection[str] = frozenset()
) -> KernelOwner:
    """Return whose a GPU's kernel is; `aten` is all of torch's: ATen, Inductor, copies and fills.

    Args:
        name: as the activity record gives it.
        claims: what the candidate defines.
        elsewhere: names that run in the reference, where nothing of the candidate is loaded: a
            library's kernel does not become the candidate's by a namesake.
    """
    if _TORCH.search(name):
        return "aten"
    if _CLOSED.search(name):
        return "library"
    if _INDUCTOR.search(name):
        return "user" if base_name(name) in claims.names else "aten"
    defined = claims.define(name)
    if owner(name) == "library":
        return "user" if defined and name not in elsewhere else "library"
    return "user" if defined or claims.mention(name) else "library"


def operation_owner(name: str, *, claims: Claims) -> KernelOwner:
    """Return whose an operation of torch's dispatcher is, by its namespace.

    Args:
        name: such as `aten::mm` or `mine::scale`.
        claims: what the candidate's text names; an operation of no one's is a package's.
    """
    space, _, rest = name.partition("::")
    if space in _LIBRARY_SPACES or _LIBRARY_OP.match(name):
        return "library"
    if space in _TORCH_SPACES or not rest:
        return "aten"
    return "user" if space in claims.words else "library"


def mangled_names(binary: bytes) -> Iterable[str]:
    """Return the mangled names in a binary, each once: those of its kernels are among them."""
    found = re.findall(rb"_Z[A-Za-z0-9_.$]{3,4000}", binary)
    return {each.decode("ascii") for each in found}
