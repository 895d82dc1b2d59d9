"""The rules that a native text is held against, each certain where it speaks.

* header: an `#include` of CUTLASS that the tree has not;
* atom: `SM90_64x100x16_…`, a name in the form of an atom's that the tree has nowhere;
* usage: arguments for which an unconditional `static_assert` of the tree is false;
* layout: `tile_to_shape` to extents that the layout atom does not divide.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from itertools import islice

from kopt.cutlass.conditions import holds
from kopt.cutlass.constraint import Constraint, MinedTree, SmemAtom
from kopt.cutlass.reading import Reading
from kopt.cutlass.scopes import split_top

__all__ = ["Reading", "atom_faults", "header_faults", "layout_faults", "usage_faults"]

MAX_USES = 2_000
"""Of one kind in a text, that are looked at."""
MIN_ENTITY = 6
"""Letters of the shortest name that is taken for CUTLASS's own: `R<2, 3>` may be anybody's."""
OWN_NAMESPACES = frozenset(("", "cute", "cutlass", "arch", "cutlass::arch", "cute::SM90"))
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]((?:cute|cutlass)/[^>\"\n]+)[>\"]", re.M)
_ATOM = re.compile(r"(?<![\w:])(?:cute::)?(SM\d{2,3}_\d+x\d+x\d+_\w+)")
_SHAPE = re.compile(r"SM(?P<arch>\d+)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_(?P<suffix>\w+)")
_USE = re.compile(r"(?<![\w.>:])((?:\w+::){0,4})(\w+)\s*<")
_TILE = re.compile(r"(?<![\w.])(?:cute::)?tile_to_shape\s*\(")
_LAYOUT = re.compile(r"(?:cute::)?(?:SM90::)?(?:GMMA|UMMA)::(Layout_\w+_Atom)\s*<\s*([\w:]+)\s*>")
_EXTENT = re.compile(r"(?:cute::)?(?:_(\d+)|Int<\s*(\w+)\s*>)\s*(?:\{\s*\})?")


def header_faults(reading: Reading, tree: MinedTree) -> Iterator[str]:
    """Yield headers that are not there."""
    if "__has_include" in reading.text:
        return
    for match in _INCLUDE.finditer(reading.text):
        name = match[1]
        if name in tree.headers or reading.is_uncertain(match.start()):
            continue
        stem = name.rpartition("/")[2]
        others = sorted(each for each in tree.headers if each.rpartition("/")[2] == stem)
        hint = f"; there is {others[0]}" if others else ""
        yield f"{reading.place(match.start())}: {tree.origin} has no header {name}{hint}"


def atom_faults(reading: Reading, tree: MinedTree) -> Iterator[str]:
    """Yield names of atoms that the tree has nowhere; such a name is an error anywhere."""
    if "##" in reading.text or reading.includes_own:
        return
    for match in islice(_ATOM.finditer(reading.code), MAX_USES):
        name = match[1]
        if name in tree.atoms or name in reading.declared or reading.is_uncertain(match.start()):
            continue
        near = _nearest(name, tree)
        hint = f"; near are {', '.join(near)}" if near else ""
        yield f"{reading.place(match.start())}: {tree.origin} has no atom {name}{hint}"


def usage_faults(reading: Reading, tree: MinedTree) -> Iterator[str]:
    """Yield uses for which an assertion of the tree fails."""
    rules: dict[str, list[Constraint]] = {}
    for each in tree.constraints:
        if each.is_checkable and len(each.entity) >= MIN_ENTITY:
            rules.setdefault(each.entity, []).append(each)
    uses = (match for match in _USE.finditer(reading.code) if match[2] in rules)
    for match in islice(uses, MAX_USES):
        name = match[2]
        if match[1].removesuffix("::") not in OWN_NAMESPACES:
            continue
        if name in reading.declared or reading.is_uncertain(match.start(), inside=True):
            continue
        arguments, end = reading.arguments(match.end())
        if arguments is None or not reading.completes(
            match.start(), end, is_function=rules[name][0].kind == "function"
        ):
            continue
        for rule in rules[name]:
            if _fails(rule, arguments, reading):
                told = f"{rule.condition}" + (f" ({rule.message})" if rule.message else "")
                yield (
                    f"{reading.place(match.start())}: {name}<{', '.join(arguments)}> breaks "
                    f"static_assert({told}), {rule.path}:{rule.line}"
                )


def layout_faults(reading: Reading, tree: MinedTree) -> Iterator[str]:
    """Yield tiles that a layout atom does not divide."""
    atoms = {each.name: each for each in tree.smem_atoms}
    for match in islice(_TILE.finditer(reading.code), MAX_USES):
        if "tile_to_shape" in reading.declared or reading.is_uncertain(match.start(), inside=True):
            continue
        given, _ = reading.arguments(match.end(), closing=")")
        if given is None or len(given) < 2:
            continue
        found = _LAYOUT.fullmatch(reading.resolved(given[0].removesuffix("{}").strip()))
        if found is None or found[1] not in atoms:
            continue
        atom, bits = atoms[found[1]], reading.bits(found[2])
        if bits is None:
            continue
        block = _block(atom, bits)
        extents = _extents(reading.resolved(given[1].removesuffix("{}").strip()), reading)
        if len(extents) < len(block):
            continue
        for mode, (extent, unit) in enumerate(zip(extents, block, strict=False)):
            if extent is not None and extent % unit != 0:
                yield (
                    f"{reading.place(match.start())}: tile_to_shape: {atom.name}<{found[2]}> is a "
                    f"block of {block[0]} x {block[1]} elements, and {unit} does not divide the "
                    f"extent {extent} of mode {mode}, {atom.path}:{atom.line}"
                )


def _nearest(name: str, tree: MinedTree) -> list[str]:
    """Return atoms that differ in N only, the nearest first; else those that are spelt alike."""
    shape = _SHAPE.fullmatch(name)
    if shape is not None:
        wanted = int(shape["n"])
        for each in tree.families:
            if (each.arch, each.m, each.k, each.suffix) == (
                shape["arch"],
                int(shape["m"]),
                int(shape["k"]),
                shape["suffix"],
            ):
                ns = sorted(each.ns, key=lambda n: (abs(n - wanted), n))[:3]
                return [f"SM{each.arch}_{each.m}x{n}x{each.k}_{each.suffix}" for n in ns]
    return difflib.get_close_matches(name, sorted(tree.atoms), n=3, cutoff=0.8)


def _fails(rule: Constraint, arguments: list[str], reading: Reading) -> bool:
    numbers: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for place, parameter in enumerate(rule.parameters):
        name, _, default = parameter.partition("=")
        if name == "...":
            break
        if place < len(arguments):
            number, bits = reading.number(arguments[place]), reading.bits(arguments[place])
        elif default and default != "?":
            number = int(default) if default.isdigit() else numbers.get(default)
            bits = sizes.get(default)
        else:
            continue
        if number is not None:
            numbers[name] = number
        if bits is not None:
            sizes[name] = bits
    return holds(rule.condition, numbers=numbers, sizes=sizes) is False


def _block(atom: SmemAtom, bits: int) -> tuple[int, int]:
    first, second = atom.bits
    return (first // bits, second) if atom.contiguous == 0 else (first, second // bits)


def _extents(text: str, reading: Reading) -> list[int | None]:
    """Return a static shape's extents, None for those that are not numbers; empty for no shape."""
    match = re.fullmatch(r"(?:cute::)?(?:Shape\s*<(.*)>|make_shape\s*\((.*)\))", text, re.DOTALL)
    if match is None:
        return []
    extents: list[int | None] = []
    for part in split_top(match[1] or match[2] or ""):
        found = _EXTENT.fullmatch(part)
        extents.append(reading.number(found[1] or found[2]) if found else None)
    return extents
