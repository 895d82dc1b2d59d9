"""From a problem to an ATen graph without mutation, with the names of what it reads.

torch.export gives the graph; linear, convolution, pooling and norms stay whole operations, since
rules speak of them. In-place operations become plain ones, dropout that does nothing goes, and
whatever cannot be seen through is said in one line (`NotRewritable`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from kopt.actors.rewriter.functional import Effect, functionalise
from kopt.actors.rewriter.graph import NotRewritable, argument, fake_mode
from kopt.actors.rewriter.literals import numbers_for_literals
from kopt.actors.rewriter.normalise import normalise
from kopt.actors.rewriter.reference import (
    ModuleMode,
    Reference,
    Smaller,
    attribute_expression,
    first_line,
    load_reference,
)
from kopt.errors import ProblemError
from kopt.problem import Problem

LITERAL_ELEMENTS = 16
"""A constant tensor made inside forward is written out up to this many elements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A tensor that forward is given."""

    path: tuple[int | str, ...]
    """Where it lies in the arguments: (1,) is the second, (0, "key") an item of the first."""
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """An argument of forward that is no tensor: its value is part of the graph."""

    path: tuple[int | str, ...]
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What is known of a reference. Placeholders are named by the graph."""

    problem: Problem
    graph: fx.GraphModule
    """Functional ATen graph in normal form; fake tensors in meta["val"], on the CPU."""
    mode: FakeTensorMode
    """The mode of those fake tensors."""
    arguments: dict[str, Argument]
    """Placeholders that forward is given."""
    constants: tuple[Constant, ...]
    attributes: dict[str, str]
    """Placeholders that are tensors of the module, and how each is reached: `layers[0].weight`."""
    literals: dict[str, torch.Tensor]
    """Placeholders that are constants made inside forward (real, small)."""
    effects: tuple[Effect, ...]
    """What forward changes in the module, besides its result."""
    out_spec: pytree.TreeSpec
    """How the graph's outputs make up forward's result."""


def capture(problem: Problem, *, mode: ModuleMode, smaller: Smaller | None = None) -> Captured:
    """Read a problem.

    Args:
        problem: to read.
        mode: how modules run.
        smaller: how sizes are cut; None leaves them as they are.

    Raises:
        ProblemError: the source does not import, or breaks the contract.
        NotRewritable: it runs, but its graph cannot be seen (data-dependent control flow,
            random numbers, mutation that has no functional form).
    """
    reference = load_reference(problem, mode=mode, smaller=smaller)
    program = _exported(reference)
    arguments, constants, attributes, literals = _inputs(program, reference)
    module = program.graph_module
    effects = functionalise(module, attributes)
    if effects is None:
        program = _decomposed(program)
        module, effects = program.graph_module, ()
        arguments, constants, attributes, literals = _inputs(program, reference)
    _keep_user_outputs(problem, program, module)
    fake = fake_mode(module)
    literals = numbers_for_literals(module, literals, mode=fake)
    normalise(module, fake)
    _check(module)
    return Captured(
        problem=problem,
        graph=module,
        mode=fake,
        arguments=arguments,
        constants=constants,
        attributes=attributes,
        literals=literals,
        effects=effects,
        out_spec=program.call_spec.out_spec,
    )


def _exported(reference: Reference) -> ExportedProgram:
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            if reference.fake is None:
                return torch.export.export(reference.model, reference.arguments, strict=False)
            with reference.fake:
                return torch.export.export(reference.model, reference.arguments, strict=False)
    except Exception as error:
        raise NotRewritable(f"torch.export failed: {first_line(error)}") from error


def _decomposed(program: ExportedProgram) -> ExportedProgram:
    """Let torch make the graph functional, at the price of some whole operations."""
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = program.run_decompositions({})
    except Exception as error:
        raise NotRewritable(f"no functional form: {first_line(error)}") from error
    for spec in program.graph_signature.output_specs:
        if spec.kind is not OutputKind.USER_OUTPUT:
            raise NotRewritable(f"forward changes {spec.target}")
    return program


def _inputs(
    program: ExportedProgram, reference: Reference
) -> tuple[dict[str, Argument], tuple[Constant, ...], dict[str, str], dict[str, torch.Tensor]]:
    arguments: dict[str, Argument] = {}
    constants: list[Constant] = []
    attributes: dict[str, str] = {}
    literals: dict[str, torch.Tensor] = {}
    leaves = pytree.tree_flatten_with_path(reference.arguments)[0]
    users = [s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
    if len(users) != len(leaves):
        raise NotRewritable("forward's arguments do not match the exported graph's")
    for (path, value), spec in zip(leaves, users, strict=True):
        if isinstance(value, torch.Tensor):
            arguments[spec.arg.name] = Argument(
                path=_plain_path(path), shape=tuple(value.shape), dtype=value.dtype
            )
        else:
            constants.append(Constant(path=_plain_path(path), value=value))
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            continue
        if spec.kind not in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            raise NotRewritable(f"forward reads {spec.target}, which is no tensor")
        assert spec.target is not None
        expression = attribute_expression(reference.model, spec.target)
        if expression is not None:
            attributes[spec.arg.name] = expression
        else:
            literals[spec.arg.name] = _literal(program, spec.target)
    return arguments, tuple(constants), attributes, literals


def _plain_path(path: tuple[Any, ...]) -> tuple[int | str, ...]:
    plain: list[int | str] = []
    for key in path:
        if isinstance(key, pytree.SequenceKey):
            plain.append(key.idx)
        elif isinstance(key, pytree.MappingKey) and isinstance(key.key, int | str):
            plain.append(key.key)
        else:
            raise NotRewritable(f"an argument of forward holds tensors under {key}")
    return tuple(plain)


def _literal(program: ExportedProgram, name: str) -> torch.Tensor:
    value = program.constants.get(name)
    constant = getattr(value, "constant", None)
    if constant is not None:
        value = constant
    if not isinstance(value, torch.Tensor) or type(value) is not torch.Tensor:
        raise NotRewritable(f"the value of the constant {name} is not known")
    if value.numel() > LITERAL_ELEMENTS:
        raise NotRewritable(f"forward makes a constant tensor of {value.numel()} elements")
    return value


def _keep_user_outputs(problem: Problem, program: ExportedProgram, module: fx.GraphModule) -> None:
    for spec in program.graph_signature.output_specs:
        if spec.kind is not OutputKind.USER_OUTPUT and spec.kind is not OutputKind.BUFFER_MUTATION:
            raise NotRewritable(f"forward gives back or changes {spec.target}")
    results = module.graph.output_node().args[0]
    assert isinstance(results, tuple | list)
    if not any(isinstance(result, fx.Node) for result in results):
        raise ProblemError(problem.name, "forward must return a tensor, and gives none")
    if not all(isinstance(result, fx.Node) for result in results):
        raise NotRewritable("forward gives back something that is no tensor")


def _check(module: fx.GraphModule) -> None:
    for node in module.graph.nodes:
        if node.op not in ("placeholder", "call_function", "output"):
            raise NotRewritable(f"the graph has a {node.op}")
        target = node.target
        if isinstance(target, torch._ops.HigherOrderOperator):
            raise NotRewritable(f"control flow ({target})")
        held = node.meta.get("val")
        tensors = held if isinstance(held, tuple | list) else [held]
        for tensor in tensors:
            if isinstance(tensor, torch.SymInt | torch.SymFloat | torch.SymBool) or (
                isinstance(tensor, torch.Tensor)
                and any(not isinstance(size, int) for size in tensor.shape)
            ):
                raise NotRewritable(f"{target} gives a size that depends on data")
        if isinstance(target, torch._ops.OpOverload):
            if target._schema.is_mutable:
                raise NotRewritable(f"{target} changes a tensor in place")
            if _draws_random_numbers(node):
                raise NotRewritable(f"{target} draws random numbers")


_RANDOM_ARGUMENT = {
    "aten::scaled_dot_product_attention": "dropout_p",
    "aten::lstm": "dropout",
    "aten::gru": "dropout",
    "aten::rnn_tanh": "dropout",
    "aten::rnn_relu": "dropout",
}
"""Operations that are random only where this argument, a probability, is not 0."""


def _draws_random_numbers(node: fx.Node) -> bool:
    target = node.target
    assert isinstance(target, torch._ops.OpOverload)
    if torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    name = _RANDOM_ARGUMENT.get(target._schema.name)
    return name is None or bool(argument(node, name) != 0.0)
