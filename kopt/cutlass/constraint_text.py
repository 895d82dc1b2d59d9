"""What a tree demands, as a section of a prompt: for one architecture, and of a bounded size."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from kopt.cutlass.constraint import Constraint, MinedTree, MmaFamily, SmemAtom

MAX_RULE = 240
MAX_NAMES = 6
"""Names in one line."""
_SHOWN = ("include/cute/", "include/cutlass/arch/", "include/cutlass/pipeline/")
_RARE = re.compile("sparse|im2col")
"""Headers for what few kernels do."""
_ARCH = re.compile(r"sm(\d{2,3})")
_BOX = re.compile("smem_box|0b1111|gmem_address")
_INDEX = re.compile(r"\[[\w ]+\]")
_SPECIFIC = {"90": "sm_90a", "100": "sm_100a", "103": "sm_103a", "120": "sm_120a"}
"""Capability to the architecture that its own matrix instructions are compiled for."""
_WARPGROUP_M = 64
"""Rows of a matrix instruction that belongs to one architecture, and not to later ones."""


def constraint_lines(tree: MinedTree, *, arch: str, has_tools: bool) -> tuple[str, ...]:
    """Return a head and the rules that matter on an architecture, the most telling first.

    Args:
        tree: what was mined.
        arch: as a target names it, such as `sm_90`.
        has_tools: whether the model may search the tree.
    """
    capability = re.sub(r"\D", "", arch)
    head = "\n".join(_head(tree, capability=capability, has_tools=has_tools))
    return (head, *dict.fromkeys(_rules(tree, capability=capability)))


def fitting(lines: Sequence[str], *, max_characters: int) -> str:
    """Return a head and as many rules as fit; how many do not, and nothing without the head.

    Args:
        lines: of `constraint_lines`; none for no section.
        max_characters: of the whole.
    """
    if not lines or len(lines[0]) > max_characters:
        return ""
    shown, used = [lines[0]], len(lines[0])
    for number, rule in enumerate(lines[1:], start=1):
        more = f"- … {len(lines) - number} more in the source"
        needed = len(rule) + 1 + (len(more) + 1 if number < len(lines) - 1 else 0)
        if used + needed > max_characters:
            if used + len(more) + 1 <= max_characters:
                shown.append(more)
            break
        shown.append(rule)
        used += len(rule) + 1
    return "\n".join(shown)


def constraints_text(
    tree: MinedTree, *, arch: str, max_characters: int, has_tools: bool = False
) -> str:
    """Return both as one section: `fitting` of `constraint_lines`."""
    lines = constraint_lines(tree, arch=arch, has_tools=has_tools)
    return fitting(lines, max_characters=max_characters)


def _head(tree: MinedTree, *, capability: str, has_tools: bool) -> Iterator[str]:
    yield f"### CUTLASS and CuTe ({tree.origin})"
    yield ""
    yield (
        f'In a CUDA candidate: `extra_include_paths=["{tree.root}/include"]`, `-std=c++17`, '
        "`#include <cute/tensor.hpp>`."
    )
    if capability in _SPECIFIC:
        yield f"SM{capability} atoms need `-arch={_SPECIFIC[capability]}`."
    if has_tools:
        yield (
            "Functions search and read its source: look names and shapes up before you use them; "
            "check_smem_layout compiles a layout."
        )
    yield "What its source demands:"
    yield ""


def _rules(tree: MinedTree, *, capability: str) -> Iterator[str]:
    own, older = _atoms(tree.families, capability=capability)
    yield from own
    yield from _blocks(tree, capability=capability)
    yield from _demands(tree, capability=capability)
    yield from older


def _blocks(tree: MinedTree, *, capability: str) -> Iterator[str]:
    """One line for all layout atoms that differ in the extent that is contiguous only."""
    blocks: dict[tuple[int, int], list[SmemAtom]] = {}
    for atom in tree.smem_atoms:
        needs = _ARCH.search(atom.path)
        if needs is None or int(needs[1]) <= int(capability or 0):
            other = atom.bits[1 - atom.contiguous]
            blocks.setdefault((atom.contiguous, other), []).append(atom)
    for (contiguous, other), atoms in sorted(blocks.items(), key=lambda item: -len(item[1])):
        names = ", ".join(f"{atom.name}<T>" for atom in atoms)
        bits = ", ".join(str(atom.bits[contiguous]) for atom in atoms)
        shape = f"{other} × n" if contiguous else f"n × {other}"
        yield (
            f"- `{names}`: blocks of {shape} elements, n = {bits} bits of T; tile_to_shape takes "
            "multiples of them"
        )


def _demands(tree: MinedTree, *, capability: str) -> Iterator[str]:
    told: dict[tuple[str, str], list[Constraint]] = {}
    shown = [each for each in tree.constraints if _is_told(each, capability=capability)]
    for each in sorted(shown, key=lambda rule: _rank(rule, capability=capability)):
        key = (_INDEX.sub("[i]", each.condition), each.message)
        told.setdefault(key, []).append(each)
    for (condition, message), rules in told.items():
        yield _rule(condition, message, rules)


def _is_told(rule: Constraint, *, capability: str) -> bool:
    """Whether a rule is worth its place: unconditional, of this architecture, and says why."""
    if rule.is_conditional or not rule.path.startswith(_SHOWN) or _RARE.search(rule.path):
        return False
    if rule.arch and rule.arch != capability and not _is_older(rule, capability=capability):
        return False
    return bool(rule.message) or (rule.is_checkable and bool(rule.arch))


def _is_older(rule: Constraint, *, capability: str) -> bool:
    return rule.arch.isdigit() and capability.isdigit() and int(rule.arch) < int(capability)


def _rank(rule: Constraint, *, capability: str) -> tuple[int, str, int]:
    """The order of telling: what is held against candidates, of the newest architecture, first."""
    place = 0 if rule.is_checkable and rule.arch == capability else 3 if rule.is_checkable else 5
    if "tma" in rule.path.rsplit("/", 1)[-1] and not rule.is_checkable:
        # What a descriptor's box may be is found out at run time only, if at all.
        place = 1 if _BOX.search(rule.condition) else 4
    return (place + (place > 1 and rule.arch != capability), rule.path, rule.line)


def _rule(condition: str, message: str, rules: Sequence[Constraint]) -> str:
    names = list(dict.fromkeys(each.entity for each in rules if each.entity))
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    asked = set(re.findall(r"\w+", condition))
    named = [each.partition("=")[0] for each in rules[0].parameters]
    parameters = ", ".join(each if each in asked else "…" for each in named)
    parameters = re.sub(r"…(?:, …)+", "…", parameters).strip("…, ") if asked else ""
    listed = ", ".join(names[:MAX_NAMES]) + more
    about = f"`{listed}{f'<{parameters}>' if parameters else ''}`: " if names else ""
    text = f"- {about}`{condition}`" + (f" ({message})" if message else "")
    return text if len(text) <= MAX_RULE else f"{text[: MAX_RULE - 1]}…"


def _atoms(
    families: Sequence[MmaFamily], *, capability: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a line for all atoms of a shape: this architecture's, and those it takes of others."""
    if not capability:
        return (), ()
    dense = [each for each in families if "sparse" not in each.path]
    before = {each.arch for each in dense if _is_of_any(each) and int(each.arch) < int(capability)}
    older = sorted(before, key=int, reverse=True)[:2]
    own = tuple(_family_lines([each for each in dense if each.arch == capability]))
    others = [
        each
        for arch in older
        for each in dense
        if each.arch == arch and _is_of_any(each) and each.suffix.startswith("F")
    ]
    return own, tuple(_family_lines(others))


def _family_lines(families: Sequence[MmaFamily]) -> Iterator[str]:
    """The widest choice first: what is one shape only comes after what is many."""
    shapes: dict[tuple[str, int, tuple[int, ...], int], list[str]] = {}
    for each in families:
        shapes.setdefault((each.arch, each.m, each.ns, each.k), []).append(each.suffix)
    for (arch, m, ns, k), suffixes in sorted(shapes.items(), key=lambda item: -len(item[0][2])):
        n = "N" if len(ns) > 1 else str(ns[0])
        where = f", N = {_numbers(ns)}" if len(ns) > 1 else ""
        floats = sorted(suffixes, key=lambda suffix: (not suffix.startswith("F"), suffix))
        more = f", … {len(floats) - MAX_NAMES} more" if len(floats) > MAX_NAMES else ""
        yield f"- `SM{arch}_{m}x{n}x{k}_…`{where}: {', '.join(floats[:MAX_NAMES])}{more}"


def _is_of_any(family: MmaFamily) -> bool:
    """Whether later architectures have a family's instructions as well."""
    return family.m != _WARPGROUP_M


def _numbers(ns: Sequence[int]) -> str:
    steps = {after - before for before, after in itertools.pairwise(ns)}
    if len(steps) == 1 and len(ns) > 3:
        return f"{ns[0]}, {ns[1]}, … {ns[-1]}"
    return ", ".join(map(str, ns))
