"""Inductor's output module, read by ast: kernels, and what its `call` does, step by step.

Each step says which values it reads and which it writes. A value is named by the buffer that the
compiler made for it (`buf3`) or by the argument (`arg0_1`). A variable is no value: the output
hands memory on (`buf5 = buf3; del buf3  # reuse`), so that `buf5` holds the value `buf3` until a
kernel writes it. Source: profiling notes §F.2 and §F.7.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kopt.compiled.kernel_text import Kernel, kernel_of
from kopt.compiled.variables import Variables, Write

StepKind = Literal["launch", "library", "memory", "end", "other"]
"""`launch` of a generated kernel; `library` call (BLAS, cuDNN, ATen); `memory` is made, named anew
or let go; `end` gives the results back; `other` changes no value."""

ALIASES = ("reinterpret_tensor", "torch.as_strided", "alloc_from_pool")
_NO_VALUE = ("assert_size_stride", "assert_alignment", "args.clear", "get_raw_stream")
_LIBRARIES = ("extern_kernels.", "torch.ops.", "aten.", "inductor_ops.", "_quantized.", "fallback.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A tensor argument of a launch."""

    position: int
    """Among the launch's arguments."""
    reads: str | None
    """The value in it before, where the kernel reads it."""
    writes: str | None
    """The value in it after, where the kernel writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One statement of `call`, those within its `with` blocks counted one by one."""

    place: int
    """Its number, from 0."""
    kind: StepKind
    name: str = ""
    """The kernel's, or the library function's (`extern_kernels.addmm`)."""
    reads: tuple[str, ...] = ()
    """Values, each once."""
    writes: tuple[Write, ...] = ()
    holders: Mapping[str, str] | None = None
    """Of a launch: for each value that is alive before it, a variable that holds it."""
    operands: tuple[Operand, ...] = ()
    """Of a launch."""
    text: str = ""
    """Of a library call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputCode:
    """What an output module holds."""

    kernels: Mapping[str, Kernel]
    arguments: tuple[str, ...]
    """Names of the arguments of `call`, in order."""
    steps: tuple[Step, ...]
    constants: tuple[str, ...] = ()
    """Tensors that the live module has, and a plain import of the text has not."""
    opaque: str = ""
    """Why `call` cannot be followed, in a line; empty where it can."""

    @property
    def launches(self) -> tuple[Step, ...]:
        """The launches of generated kernels, in order."""
        return tuple(step for step in self.steps if step.kind == "launch")

    @property
    def library_calls(self) -> tuple[Step, ...]:
        """The library calls, in order: good already, and kept."""
        return tuple(step for step in self.steps if step.kind == "library")

    @property
    def results(self) -> tuple[str, ...]:
        """The values that `call` gives back, each once."""
        return next((step.reads for step in self.steps if step.kind == "end"), ())

    def readers(self, value: str, *, after: int) -> tuple[int, ...]:
        """Return the places after one at which a value is read."""
        return tuple(s.place for s in self.steps if s.place > after and value in s.reads)


def read_output_code(source: str) -> OutputCode:
    """Read an output module.

    Raises:
        ValueError: it does not parse, or has no `call(args)`.
    """
    try:
        module = ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"the output code does not parse: line {error.lineno}") from None
    kernels = {k.name: k for k in map(kernel_of, module.body) if k is not None}
    function = call_function(module)
    constants = tuple(_constants(module))
    reader = _Reader(kernels, constants)
    steps = [reader.step(place, node) for place, node in enumerate(statements(function))]
    return OutputCode(
        kernels=kernels,
        arguments=tuple(reader.arguments),
        steps=tuple(steps),
        constants=constants,
        opaque=reader.opaque,
    )


def call_function(module: ast.Module) -> ast.FunctionDef:
    """Return the `call` of an output module, a function or a method of its runner.

    Raises:
        ValueError: there is none.
    """
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == "call":
            return node
    raise ValueError("the output code has no call(args)")


def _constants(module: ast.Module) -> Iterator[str]:
    """Yield the names that are None until the compiler puts a tensor there."""
    for node in module.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
            and node.value.value is None
        ):
            yield node.targets[0].id


def statements(function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """Yield the statements of `call` in order, those within `with` one by one."""
    yield from _flat(function.body)


def _flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.With):
            yield from _flat(node.body)
        else:
            yield node


class _Reader:
    """Follows values through the statements."""

    def __init__(self, kernels: Mapping[str, Kernel], constants: Sequence[str]) -> None:
        self._kernels = kernels
        self._known = Variables()
        for name in constants:
            self._known.given(name)
        self.arguments: list[str] = []
        self.opaque = ""

    def step(self, place: int, node: ast.stmt) -> Step:
        """Return what a statement does, and take note of it."""
        match node:
            case ast.Return(value=value):
                return Step(place=place, kind="end", reads=self._reads(value))
            case ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name):
                        self._known.forget(target.id)
                return Step(place=place, kind="memory")
            case ast.Expr(value=ast.Call() as call):
                return self._called(place, call, target=None)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Name(id="args")):
                self._given(names)
                return Step(place=place, kind="memory")
            case ast.Assign(targets=[ast.Name(id=target)], value=value):
                return self._assigned(place, target, value)
            case ast.Assert() | ast.Pass() | ast.Expr(value=ast.Constant()):
                return Step(place=place, kind="other")
            case _:
                self.opaque = self.opaque or f"a {type(node).__name__} stands in the output code"
                return Step(place=place, kind="other")

    def _given(self, names: Sequence[ast.expr]) -> None:
        for name in names:
            if isinstance(name, ast.Name):
                self.arguments.append(name.id)
                self._known.given(name.id)

    def _assigned(self, place: int, target: str, value: ast.expr) -> Step:
        if isinstance(value, ast.Name) and value.id == "args":
            self._given([ast.Name(id=target)])
            return Step(place=place, kind="memory")
        source = aliased(value)
        if source is not None:
            self._known.alias(target, of=source)
            return Step(place=place, kind="memory")
        if isinstance(value, ast.Call):
            name = ast.unparse(value.func)
            if name.startswith(("empty_strided", "torch.empty", "empty")):
                self._known.made(target, holds=None)
                return Step(place=place, kind="memory")
            return self._called(place, value, target=target)
        if isinstance(value, ast.Subscript):
            reads = self._reads(value)
            self._known.made(target, holds=target)
            return Step(
                place=place, kind="other", reads=reads, writes=(Write(variable=target, own=False),)
            )
        return Step(place=place, kind="other", reads=self._reads(value))

    def _called(self, place: int, call: ast.Call, *, target: str | None) -> Step:
        name = ast.unparse(call.func)
        kernel = self._kernels.get(name.removesuffix(".run"))
        if kernel is not None:
            return self._launched(place, kernel, call)
        reads = self._reads(*call.args, *(k.value for k in call.keywords if k.arg != "out"))
        writes = []
        for keyword in call.keywords:
            variable = base_name(keyword.value) if keyword.arg == "out" else None
            if variable is not None:
                writes.append(self._known.write(variable))
        if target is not None and not name.startswith(_NO_VALUE):
            self._known.made(target, holds=target)
            writes.append(Write(variable=target, own=True))
        known = name.startswith(_LIBRARIES)
        return Step(
            place=place,
            kind="library" if known else "other",
            name=name,
            reads=() if name.startswith(_NO_VALUE) else reads,
            writes=tuple(writes),
            text=ast.unparse(call) if known else "",
        )

    def _launched(self, place: int, kernel: Kernel, call: ast.Call) -> Step:
        holders = self._known.holders()
        operands: list[Operand] = []
        for position, (use, argument) in enumerate(zip(kernel.uses, call.args, strict=False)):
            variable = base_name(argument)
            if variable is not None and use != "size":
                reads = self._known.value(variable) if use in ("in", "in_out") else None
                writes = variable if use in ("out", "in_out") else None
                operands.append(Operand(position=position, reads=reads, writes=writes))
        written = dict.fromkeys(each.writes for each in operands if each.writes is not None)
        if not kernel.uses:
            self.opaque = self.opaque or f"the parameters of {kernel.name} cannot be read"
        return Step(
            place=place,
            kind="launch",
            name=kernel.name,
            reads=tuple(dict.fromkeys(o.reads for o in operands if o.reads is not None)),
            writes=tuple(self._known.write(variable) for variable in written),
            holders=holders,
            operands=tuple(operands),
        )

    def _reads(self, *expressions: ast.expr | None) -> tuple[str, ...]:
        found = []
        for expression in expressions:
            for node in ast.walk(expression) if expression is not None else ():
                if isinstance(node, ast.Name):
                    value = self._known.value(node.id)
                    if value is not None:
                        found.append(value)
        return tuple(dict.fromkeys(found))


def aliased(value: ast.expr) -> str | None:
    """Return the variable whose memory an expression names anew, or None."""
    if isinstance(value, ast.Name):
        return value.id
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ALIASES and value.args:
        return base_name(value.args[0])
    return None


def base_name(expression: ast.expr) -> str | None:
    """Return the variable that an argument is, or is a view of; None where it is neither."""
    if isinstance(expression, ast.Name):
        return expression.id
    if isinstance(expression, ast.Call) and ast.unparse(expression.func) in ALIASES:
        return base_name(expression.args[0]) if expression.args else None
    return None
