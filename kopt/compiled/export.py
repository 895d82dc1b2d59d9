"""A stitched model as one file: the model's source, the compiled code, functions in their places.

The file defines `ModelNew` with the constructor, the weights and the forward of `Model`. It needs
torch alone. Weights are found by the names of their modules; for arguments of other sizes, or in
another mode, it runs the model as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kopt.compiled.groups import Group
from kopt.compiled.recipe import Argument, Recipe, spell
from kopt.compiled.rewire import FIT, Layout, Replacement, rewire

_SUPPORT = '''
import base64 as _kopt_base64
import linecache as _kopt_linecache
import sys as _kopt_sys
import types as _kopt_types

import torch


def _kopt_module(name, text):
    """A module made of text, which inspect and Triton find again."""
    file = f"<{name}>"
    module = _kopt_types.ModuleType(name)
    module.__file__ = file
    lines = text.splitlines(keepends=True)
    _kopt_linecache.cache[file] = (len(text), None, lines, file)
    _kopt_sys.modules[module.__name__] = module
    exec(compile(text, file, "exec"), module.__dict__)
    return module


def _kopt_tensor(data, dtype, size, device):
    """A constant that the compiler keeps beside its text."""
    flat = torch.frombuffer(bytearray(_kopt_base64.b64decode(data)), dtype=dtype)
    return flat.reshape(size).to(device)


def _kopt_fit(made, size, stride):
    """A result in the size and strides that the compiled code expects."""
    if made.stride() == stride and made.shape == size:
        return made
    fitted = torch.empty_strided(size, stride, dtype=made.dtype, device=made.device)
    return fitted.copy_(made.reshape(size))
'''

_CLASS = '''
_kopt_piece = _kopt_module("kopt_compiled_{mark}", _KOPT_COMPILED)
{settings}

_KOPT_STATE = {state}
"""For each weight, in the order of the compiled code: module, table and name."""
_KOPT_GIVEN = {given}
"""For each tensor that forward is given: size, strides and dtype."""
_KOPT_PLAIN = {plain}
"""What forward is given that is no tensor."""


class ModelNew(Model):
    """The compiled model with {count} of its kernels replaced; for inference."""

    def _kopt_find(self):
        modules = dict(self.named_modules())
        held = []
        for module, table, name in _KOPT_STATE:
            owner = modules[module]
            held.append((owner.__dict__ if table == "__dict__" else owner.__dict__[table], name))
        self.__dict__["_kopt_held"] = held
        return held

    def _kopt_fits(self, args):
        """Whether the compiled code is for these arguments."""
        try:
            tensors, plain = {tensors}, {values}
        except (IndexError, KeyError, TypeError):
            return False
        if len(args) != {num_arguments} or plain != _KOPT_PLAIN:
            return False
        if self.training is not {is_training}:
            return False
        return all(
            isinstance(each, torch.Tensor)
            and each.shape == size
            and each.stride() == stride
            and each.dtype == dtype
            and each.device.type == {device!r}
            for each, (size, stride, dtype) in zip(tensors, _KOPT_GIVEN)
        )

    def forward(self, *args, **keywords):
        if keywords or not self._kopt_fits(args):
            return super().forward(*args, **keywords)
        held = self.__dict__.get("_kopt_held") or self._kopt_find()
        weights = [table[name] for table, name in held]
        with torch.no_grad():
            made = _kopt_piece.call([{arguments}])
        return {result}
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """A faster program for a group."""

    group: Group
    inputs: tuple[str, ...]
    """Values, in the order of the program's arguments."""
    source: str
    """It defines `ModelNew`."""
    name: str
    """Of its problem, for people."""


def exported(
    model_source: str,
    recipe: Recipe,
    winners: Sequence[Winner],
    *,
    layouts: Mapping[str, Layout],
    num_arguments: int,
    mark: str,
    words: str = "",
) -> str:
    """Return the text of a stitched model.

    Args:
        model_source: of the model's file; it defines `Model`.
        recipe: of its one compiled graph.
        winners: of groups that have no launch in common; none for the compiled code as it was.
        layouts: of the values that groups take and give.
        num_arguments: of forward.
        mark: part of the names of the modules made, so that two files do not meet.
        words: for the head of the file, a line or more.

    Raises:
        ValueError: a winner cannot be put in its place.
    """
    functions = {source: f"_kopt_sub_{number}" for number, source in enumerate(_each(winners))}
    text = rewire(
        recipe.source,
        [
            Replacement(group=each.group, function=functions[each.source], inputs=each.inputs)
            for each in winners
        ],
        layouts=layouts,
    )
    names = {source: name for name, source in zip(_names(winners), _each(winners), strict=True)}
    parts = [_comment(words), model_source.rstrip(), "", _SUPPORT]
    parts.append(f"_KOPT_COMPILED = {literal(text)}\n")
    settings = [f"_kopt_piece.{FIT} = {FIT}"]
    for source, function in functions.items():
        parts.append(f"# {names[source]}\n_KOPT_{function[6:].upper()} = {literal(source)}\n")
        settings.append(
            f'_kopt_piece.{function} = _kopt_module("kopt{function[5:]}_{mark}", '
            f"_KOPT_{function[6:].upper()}).ModelNew().forward"
        )
    settings += [
        f"_kopt_piece.{constant.name} = _kopt_tensor({constant.data!r}, "
        f"torch.{constant.dtype}, {constant.size}, {recipe.device!r})"
        for constant in recipe.constants
    ]
    parts.append(_class(recipe, settings, num_arguments=num_arguments, mark=mark, winners=winners))
    return "\n".join(parts)


def literal(text: str) -> str:
    """Return a text as a Python literal that reads like the text, where there is one."""
    if "\r" not in text and "\0" not in text and not text.endswith(("\\", '"', "'")):
        for quotes in ('"""', "'''"):
            if quotes not in text:
                return f"r{quotes}{text}{quotes}"
    lines = "\n".join(f"    {line!r}" for line in text.splitlines(keepends=True))
    return f"(\n{lines}\n)"


def _each(winners: Sequence[Winner]) -> list[str]:
    return list(dict.fromkeys(each.source for each in winners))


def _names(winners: Sequence[Winner]) -> list[str]:
    return [next(w.name for w in winners if w.source == source) for source in _each(winners)]


def _comment(words: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in words.splitlines())


def _class(
    recipe: Recipe,
    settings: Sequence[str],
    *,
    num_arguments: int,
    mark: str,
    winners: Sequence[Winner],
) -> str:
    states: list[tuple[str, str, str]] = []
    arguments = [_argument(argument, states) for argument in recipe.arguments]
    given = [f"({each.size}, {each.stride}, torch.{each.dtype})," for each in recipe.given]
    inside = "\n".join(f"    {line}" for line in given)
    return _CLASS.format(
        mark=mark,
        settings="\n".join(settings),
        state="(\n" + "".join(f"    {each!r},\n" for each in states) + ")" if states else "()",
        given=f"(\n{inside}\n)" if given else "()",
        plain=repr(tuple(value for _, value in recipe.plain)),
        count=sum(len(each.group.places) for each in winners),
        tensors=_tuple([_reached(each.path) for each in recipe.given]),
        values=_tuple([_reached(path) for path, _ in recipe.plain]),
        num_arguments=num_arguments,
        is_training=recipe.is_training,
        device=recipe.device,
        arguments=", ".join(arguments),
        result=spell(recipe.result, results="made", inputs="args"),
    )


def _argument(argument: Argument, states: list[tuple[str, str, str]]) -> str:
    """The expression of an argument of the compiled code; states are numbered on the way."""
    if argument.kind == "input":
        return _reached(argument.path)
    if argument.kind == "global":
        return argument.name
    states.append((argument.module, argument.table, argument.name))
    return f"weights[{len(states) - 1}]"


def _reached(path: Sequence[int | str]) -> str:
    return "args" + "".join(f"[{key!r}]" for key in path)


def _tuple(expressions: Sequence[str]) -> str:
    return "(" + "".join(f"{each}, " for each in expressions).rstrip() + ")"
