"""One generated kernel of Inductor's output: its language, its parameters, what it does to each.

Source: profiling notes §F.2. On a CPU a kernel is C++ text with a signature
`kernel(float* in_out_ptr0, const float* in_ptr0, float* out_ptr0)`; on a GPU it is a Triton
function whose parameters have the same names, and whose decorators say what kind it is.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Literal

KernelLanguage = Literal["cpp", "triton"]
KernelKind = Literal["pointwise", "reduction", "persistent_reduction", "template", "loops", "other"]
"""`template` multiplies matrices by itself; `loops` is a C++ kernel, whatever it computes."""
Use = Literal["in", "out", "in_out", "size"]

MAKERS: dict[str, KernelLanguage] = {
    "async_compile.cpp_pybinding": "cpp",
    "async_compile.cpp": "cpp",
    "async_compile.triton": "triton",
}
"""How the output makes a kernel, and in which language it is then."""

_SIGNATURE = re.compile(r"\bkernel\s*\(([^)]*)\)")
_HEURISTIC = re.compile(r"@triton_heuristics\.(\w+)")
_TRITON_KINDS: dict[str, KernelKind] = {
    "pointwise": "pointwise",
    "reduction": "reduction",
    "persistent_reduction": "persistent_reduction",
    "split_scan": "reduction",
    "cooperative_reduction": "reduction",
    "template": "template",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A generated kernel."""

    name: str
    language: KernelLanguage
    kind: KernelKind
    source: str
    uses: tuple[Use, ...]
    """What it does with each argument of a launch, in order; `size` is no tensor."""


def kernel_of(statement: ast.stmt) -> Kernel | None:
    """Return the kernel that a statement at module level makes, or None."""
    if not (
        isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and isinstance(statement.value, ast.Call)
    ):
        return None
    language = MAKERS.get(ast.unparse(statement.value.func))
    if language is None:
        return None
    texts = [
        argument.value
        for argument in statement.value.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    if not texts:
        return None
    name, source = statement.targets[0].id, texts[-1]
    if language == "cpp":
        return Kernel(name=name, language="cpp", kind="loops", source=source, uses=_cpp(source))
    found = _HEURISTIC.search(source)
    kind = "template" if "tl.dot" in source else _TRITON_KINDS.get(found[1] if found else "")
    return Kernel(
        name=name,
        language="triton",
        kind=kind or "other",
        source=source,
        uses=_triton(source, name=name),
    )


def _cpp(source: str) -> tuple[Use, ...]:
    match = _SIGNATURE.search(source)
    if match is None:
        return ()
    body = source[match.end() :]
    return tuple(_use(part, body) for part in match[1].split(",") if part.strip())


def _use(parameter: str, body: str) -> Use:
    name = parameter.split()[-1].lstrip("*&")
    if "*" not in parameter:
        return "size"
    if name.startswith("in_out"):
        return "in_out" if _reads_first(name, body) else "out"
    return "in" if name.startswith("in_ptr") or "const" in parameter else "out"


def _reads_first(name: str, body: str) -> bool:
    """Whether a parameter is read before it is written.

    Memory that is handed on holds something that a kernel need not look at: it writes half of a
    result there, and reads that. The text is in the order of its execution.
    """
    for line in body.splitlines():
        found = re.search(rf"\b{name}\b", line)
        if found is None or re.search(rf"^\s*auto \w+ = {name};", line):
            continue
        before = line[: found.start()]
        return "store(" not in before and not re.match(rf"\s*{name}\[[^=]*\]\s*=(?!=)", line)
    return False


def _triton(source: str, *, name: str) -> tuple[Use, ...]:
    try:
        module = ast.parse(source)
    except SyntaxError:
        return ()
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return tuple(_triton_use(argument.arg, source) for argument in node.args.args)
    return ()


def _triton_use(name: str, source: str) -> Use:
    if name.startswith("in_out_ptr"):
        return "in_out" if re.search(rf"tl\.load\({name}\b", source) else "out"
    if name.startswith(("in_ptr", "arg_")):
        return "in"
    return "out" if name.startswith("out_ptr") else "size"
