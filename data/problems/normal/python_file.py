"""A Python file in normal form: a model, or a kernel of any language with launch and reference.

KernelPro brings every input to one interface (§3.1, Figure 2): `class Model`, get_inputs() and
get_init_inputs(). A file that has it is taken as it is, word for word. What else it may hold is
told apart by who reads whom (roles.py), nothing of it is run.
"""

from __future__ import annotations

from kopt.data.problems.normal.device_free import without_device
from kopt.data.problems.normal.form import NormalForm
from kopt.data.problems.normal.parts import Parts
from kopt.data.problems.normal.roles import MAKERS, Roles, launchers, outermost, roles_of
from kopt.data.problems.normal.wrapper import module_text, renamed, wrapped
from kopt.errors import ConfigError
from kopt.problem import CANDIDATE_CLASS, INPUTS_FUNCTION, REFERENCE_CLASS
from kopt.prompts.parsing import parsed

FAMILY_CONSTANT = "FAMILY"
"""Kept with the reference: what kind of computation its author says it is."""
_OF_REFERENCE = "The reference of the file, in KernelBench's contract."
_OF_KERNEL = "The kernel of the file, by its own launch."


def normal_form(source: str) -> NormalForm:
    """Return a file's text in KernelBench's contract, with the kernel that it holds.

    What is no problem and holds nothing of a kernel comes back as it is: the contract's own errors
    say what is missing.

    Raises:
        ConfigError: it holds a kernel or a model, and something of it is missing; one line.
    """
    parts = _parts(source)
    if parts is None:
        return NormalForm(source)
    if parts.binds("async_compile") and parts.binds("call"):
        raise ConfigError(
            "it is what torch.compile wrote for a model; give the model's file with mode=compiled, "
            "which makes problems of its kernels"
        )
    has_kernel = parts.binds(CANDIDATE_CLASS) or bool(launchers(parts) | parts.kernels)
    if parts.binds(REFERENCE_CLASS) and parts.binds(INPUTS_FUNCTION):
        return _split(parts) if has_kernel else NormalForm(source)
    if not has_kernel and not parts.modules:
        return NormalForm(source)
    if not parts.binds(INPUTS_FUNCTION):
        if not has_kernel and parts.binds(REFERENCE_CLASS):
            return NormalForm(source)  # a problem, but for its inputs
        raise ConfigError(
            f"it defines no {INPUTS_FUNCTION}(): expected one that returns the list of arguments "
            "of the reference's forward, as tensors on the CPU"
        )
    return _of_roles(parts) if has_kernel else _of_model(parts)


def _parts(source: str) -> Parts | None:
    """A module taken apart; None where it does not parse."""
    tree = parsed(source)
    return None if tree is None else Parts(source, tree)


def _placeless(parts: Parts) -> Parts:
    """The same module with inputs that name no device, and so need nothing that finds one."""
    source = without_device(parts.source, makers=parts.needs(*MAKERS))
    return parts if source == parts.source else _parts(source) or parts


def reference_form(source: str) -> str:
    """Return the reference of a file in KernelBench's contract, whatever kernel it holds.

    Raises:
        ConfigError: there is none in it, or no get_inputs(); one line.
    """
    parts = _parts(source)
    if parts is None:
        raise ConfigError("expected the reference in Python; its text does not parse")
    if not parts.binds(INPUTS_FUNCTION):
        raise ConfigError(f"it defines no {INPUTS_FUNCTION}(), which the reference needs")
    roles = roles_of(parts)
    if not roles.reference:
        raise ConfigError(roles.why_none)
    return _reference_text(parts, roles)


def _split(parts: Parts) -> NormalForm:
    """A file in the contract with a kernel beside Model, or one that Model itself uses."""
    roles = roles_of(parts)
    if roles.launch and roles.launch not in parts.needs(REFERENCE_CLASS, *MAKERS):
        if roles.launch in parts.functions and _has_constructor(parts, REFERENCE_CLASS):
            note = (
                f"{roles.launch}() is not used: Model has a constructor, so that its kernel must "
                f"come as class {CANDIDATE_CLASS} with the same one"
            )
            return NormalForm(parts.source, note=note)
        return NormalForm(_reference_text(parts, roles), _given_text(parts, roles))
    return NormalForm(parts.source, note=roles.why_none if parts.binds(CANDIDATE_CLASS) else "")


def _of_roles(parts: Parts) -> NormalForm:
    """A kernel's file without `Model`.

    Raises:
        ConfigError: no launch or no reference is found in it.
    """
    roles = roles_of(parts)
    if not roles.launch or not roles.reference:
        raise ConfigError(f"it holds a kernel, and {roles.why_none}")
    if roles.launch in parts.functions and _has_constructor(parts, roles.reference):
        raise ConfigError(
            f"{roles.reference} has a constructor, so that its kernel must come as class "
            f"{CANDIDATE_CLASS} with the same one; found {roles.launch}()"
        )
    return NormalForm(_reference_text(parts, roles), _given_text(parts, roles))


def _of_model(parts: Parts) -> NormalForm:
    """A model's file whose class has a name of its own.

    Raises:
        ConfigError: several modules may be the model.
    """
    outer = outermost(parts, parts.modules)
    if len(outer) != 1:
        found = ", ".join(outer or parts.modules)
        raise ConfigError(f"several modules may be the model: {found}; name one {REFERENCE_CLASS}")
    source = _placeless(parts).source
    return NormalForm(renamed(source, old=outer[0], new=REFERENCE_CLASS))


def _reference_text(parts: Parts, roles: Roles) -> str:
    """The problem: the reference as Model, what makes its inputs, and what they need."""
    parts, name = _placeless(parts), roles.reference
    names = [name, *MAKERS, FAMILY_CONSTANT]
    tail = ""
    if name in parts.functions:
        arguments = parts.functions[name].args
        tail = wrapped(REFERENCE_CLASS, arguments=arguments, calls=name, what=_OF_REFERENCE)
    text = module_text(parts, names=names, tail=tail, with_docstring=True)
    if name in parts.classes and name != REFERENCE_CLASS:
        return renamed(text, old=name, new=REFERENCE_CLASS)
    return text


def _given_text(parts: Parts, roles: Roles) -> str:
    """The kernel: its launch as ModelNew, and what it needs.

    Raises:
        ConfigError: it is compiled from a file, which whoever judges its text does not have.
    """
    if files := parts.loaded_files():
        raise ConfigError(
            f"it compiles {', '.join(files)}, and a kernel is judged by one text: give that file "
            "as the problem, or its text to load_inline"
        )
    name = roles.launch
    tail = ""
    if name in parts.functions:
        arguments = parts.functions[name].args
        tail = wrapped(CANDIDATE_CLASS, arguments=arguments, calls=name, what=_OF_KERNEL)
    text = module_text(parts, names=[name], tail=tail)
    if name in parts.classes and name != CANDIDATE_CLASS:
        text = renamed(text, old=name, new=CANDIDATE_CLASS)
    return text


def _has_constructor(parts: Parts, name: str) -> bool:
    node = parts.classes.get(name)
    return node is not None and any(
        getattr(member, "name", None) == "__init__" for member in node.body
    )
