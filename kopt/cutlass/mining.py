"""Mining: what a tree's assertions, atoms and layouts demand (KernelPro §3.2.4)."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kopt.cutlass.conditions import names_in
from kopt.cutlass.constraint import Constraint, EntityKind, MinedTree, MmaFamily, SmemAtom
from kopt.cutlass.scopes import Assertion, Scan

MAX_CONDITION = 240
"""Characters; longer ones say nothing at a glance."""
INCLUDE = "include/"
_ATOM = re.compile(r"\bSM\d{2,3}_\w+")
EXTENDED = "_ext."
"""In the name of a header whose atoms are there only where a macro asks for them."""
_MMA = re.compile(
    r"^(?:struct|using)[ \t]+SM(?P<arch>\d{2,3})_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_(?P<suffix>\w+)",
    re.MULTILINE,
)
_SMEM = re.compile(
    r"^using[ \t]+(?P<name>Layout_\w+_Atom)_Bits[ \t]*=[^;]*?"
    r"Shape<\s*_(?P<a>\d+)\s*,\s*_(?P<b>\d+)\s*>\s*,\s*Stride<\s*_(?P<s>\d+)\s*,",
    re.MULTILINE,
)
_ARCH = re.compile(r"sm(\d{2,3})", re.IGNORECASE)
_AFTER = re.compile(r"[ \t]*;[ \t]*//[ \t]*([^\n]{1,120})")
_LITERAL = re.compile(r',\s*((?:"(?:[^"\\]|\\.)*"\s*)+)$')
_NOTHING = re.compile(r"dependent_false|always_false|sizeof\(\w+\) < 0|^\s*(?:false|0)\s*$")
"""Conditions of branches that may not be taken: no rule in themselves."""


def tree_key(texts: Mapping[str, str]) -> str:
    """Return the name of a tree's version: the hash of its headers."""
    digest = hashlib.sha256()
    for path in sorted(texts):
        if path.startswith(INCLUDE):
            digest.update(f"{path}\0{len(texts[path])}\0".encode())
            digest.update(texts[path].encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]


def mine(texts: Mapping[str, str], *, root: str, origin: str) -> MinedTree:
    """Mine a tree; some seconds for a whole one.

    Args:
        texts: by path from the root.
        root: where the tree lies.
        origin: of the tree, in words.
    """
    headers = {path: text for path, text in texts.items() if path.startswith(INCLUDE)}
    found: list[Constraint] = []
    defined: Counter[str] = Counter()
    for path in sorted(headers):
        scan = Scan(headers[path])
        for scope in scan.opened:
            defined[scope.name] += 1
        found += _constraints(scan, path=path)
    return MinedTree(
        key=tree_key(texts),
        root=root,
        origin=origin,
        constraints=tuple(_once(found, defined=defined)),
        families=tuple(_families(headers)),
        smem_atoms=tuple(_smem_atoms(headers)),
        atoms=frozenset(name for text in headers.values() for name in set(_ATOM.findall(text))),
        headers=frozenset(path.removeprefix(INCLUDE) for path in headers),
    )


def _constraints(scan: Scan, *, path: str) -> Iterator[Constraint]:
    is_tma = "tma" in path.rsplit("/", 1)[-1]
    line, seen = 1, 0
    for each in sorted(scan.assertions, key=lambda assertion: assertion.start):
        if each.word == "assert" and not is_tma:
            continue  # checked at run time, and only in debug builds; TMA's say what a box may be
        line += scan.text.count("\n", seen, each.start)
        seen = each.start
        constraint = _constraint(each, scan=scan, path=path, line=line)
        if constraint is not None:
            yield constraint


def _constraint(each: Assertion, *, scan: Scan, path: str, line: int) -> Constraint | None:
    condition = " ".join(each.arguments.split())
    literal = _LITERAL.search(condition)
    if literal:
        condition = condition[: literal.start()].rstrip()
    after = _AFTER.match(scan.text, each.end)
    message = _unquoted(literal[1]) if literal else (after[1].strip() if after else "")
    condition, quoted = _without_words(condition)
    if not condition or len(condition) > MAX_CONDITION or _NOTHING.search(condition):
        return None
    named = [scope for scope in each.scopes if scope.kind in ("type", "function")]
    owner = named[-1] if named else None
    kind: EntityKind = "other"
    if owner is not None and owner.kind in ("type", "function"):
        kind = "type" if owner.kind == "type" else "function"
    entity = owner.name if owner is not None else ""
    parameters = owner.parameters or () if owner is not None else ()
    names = names_in(condition)
    is_plain = scan.is_balanced and owner is not None and each.scopes[-1] is owner
    is_checkable = (
        is_plain
        and each.word != "assert"
        and len(named) == 1
        and not each.in_branch
        and owner is not None
        and not owner.is_special
        and owner.parameters is not None
        and names is not None
        and names <= {name.partition("=")[0] for name in parameters}
    )
    return Constraint(
        entity=entity,
        kind=kind,
        parameters=parameters,
        condition=condition,
        message=message or quoted,
        path=path,
        line=line,
        arch=_arch_of(entity) or _arch_of(path),
        is_conditional=not is_plain,
        is_checkable=is_checkable,
    )


def _unquoted(literals: str) -> str:
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).strip()


def _without_words(condition: str) -> tuple[str, str]:
    """Return a condition without `&& "message"`, and the message."""
    match = re.search(r'\s*&&\s*"((?:[^"\\]|\\.)*)"\s*$', condition)
    return (condition[: match.start()], match[1]) if match else (condition, "")


def _arch_of(text: str) -> str:
    found = _ARCH.search(text)
    return found[1] if found else ""


def _once(found: list[Constraint], *, defined: Counter[str]) -> Iterator[Constraint]:
    """Yield each rule once; what several definitions share a name with is not checkable."""
    seen: set[tuple[str, str, str]] = set()
    for each in found:
        key = (each.entity, each.condition, each.message)
        if key in seen:
            continue
        seen.add(key)
        if each.is_checkable and defined[each.entity] > 1:
            yield replace(each, is_checkable=False)
        else:
            yield each


def _families(headers: Mapping[str, str]) -> Iterator[MmaFamily]:
    ns: dict[tuple[str, int, int, str], set[int]] = {}
    first: dict[tuple[str, int, int, str], tuple[str, int]] = {}
    for path in sorted(each for each in headers if EXTENDED not in each):
        text = headers[path]
        line, seen = 1, 0
        for match in _MMA.finditer(text):
            line += text.count("\n", seen, match.start())
            seen = match.start()
            key = (match["arch"], int(match["m"]), int(match["k"]), match["suffix"])
            ns.setdefault(key, set()).add(int(match["n"]))
            first.setdefault(key, (path, line))
    for key in sorted(ns):
        arch, m, k, suffix = key
        path, line = first[key]
        yield MmaFamily(
            arch=arch, m=m, ns=tuple(sorted(ns[key])), k=k, suffix=suffix, path=path, line=line
        )


def _smem_atoms(headers: Mapping[str, str]) -> Iterator[SmemAtom]:
    names: set[str] = set()
    for path in sorted(headers):
        text = headers[path]
        for match in _SMEM.finditer(text):
            if match["name"] not in names:
                names.add(match["name"])
                yield SmemAtom(
                    name=match["name"],
                    bits=(int(match["a"]), int(match["b"])),
                    contiguous=0 if match["s"] == "1" else 1,
                    path=path,
                    line=text.count("\n", 0, match.start()) + 1,
                )
