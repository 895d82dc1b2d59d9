"""Whose a kernel is, and which names of it are the same kernel."""

from __future__ import annotations

import re
from collections.abc import Collection

from kopt.evidence import KernelOwner

_LIBRARY = re.compile(
    r"cublas|cutlass|xmma|nvjet|cudnn|implicit_|gemm|fmha|flash|sm80_|sm90_|sm100_|ampere_|volta_"
    r"|nccl|cub::|thrust::|splitkreduce|winograd",
    re.IGNORECASE,
)
_ATEN = re.compile(r"\bat::|\bc10::|at_cuda_detail|_ZN2at")
"""Profilers leave `native::` out of torch's names, or not."""
_ITANIUM = re.compile(r"_Z(N?)")
_LENGTH = re.compile(r"(\d+)")


def owner(name: str, *, own: Collection[str] = ()) -> KernelOwner:
    """Return whose a kernel is: the candidate's, a library's, or torch's.

    Args:
        name: as a profiler gives it, mangled or not.
        own: names of the candidate's entry points, as its binaries or its source give them; a
            kernel of one of them is the candidate's whatever it is called.
    """
    if own and base_name(name) in {base_name(each) for each in own}:
        return "user"
    if _ATEN.search(_without_parameters(name)):
        return "aten"
    return "library" if _LIBRARY.search(name) else "user"


def base_name(name: str) -> str:
    """Return the function's own name, without namespaces, template arguments and parameters.

    `void ns::scale<float>(float*, int)`, `_ZN2ns5scaleIfEEvPT_i` and `scale` give `scale`.
    """
    if name.startswith("_Z"):
        return _unmangled(name) or name
    return _undecorated(name)


def _unmangled(name: str) -> str | None:
    """The last identifier of an Itanium-mangled name's path; None where it is none."""
    start = _ITANIUM.match(name)
    if start is None:
        return None
    position, last = start.end(), None
    while (length := _LENGTH.match(name, position)) is not None:
        end = length.end() + int(length[1])
        last = name[length.end() : end]
        position = end
        if not start[1]:
            break
    return last or None


def _undecorated(name: str) -> str:
    """The name up to its parameters, without return type, namespaces and template arguments."""
    kept: list[str] = []
    depth = 0
    for character in _without_parameters(name):
        if character == "<":
            depth += 1
        elif character == ">" and depth:
            depth -= 1
        elif not depth:
            kept.append(character)
    words = "".join(kept).split()
    return words[-1].split("::")[-1] if words else name


def _without_parameters(name: str) -> str:
    """The name up to its parameters: a kernel of anybody's may take torch's accessors."""
    plain = name.replace("(anonymous namespace)", "anonymous")
    depth = 0
    for at, character in enumerate(plain):
        if character == "<":
            depth += 1
        elif character == ">" and depth:
            depth -= 1
        elif character == "(" and not depth:
            return plain[:at]
    return plain
