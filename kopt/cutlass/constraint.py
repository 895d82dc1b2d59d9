"""What CUTLASS's source demands of those who use it, as values, and their JSON.

Mined once from each version of a tree: `mining`. Told in prompts: `constraint_text`. Held against
candidates: `validator`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

SCHEMA = 1
"""Of the JSON; files of another are mined again."""

EntityKind = Literal["function", "type", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """One assertion, with what it is about."""

    entity: str
    """The function or type that asserts it; empty where the text does not say."""
    kind: EntityKind
    parameters: tuple[str, ...] = ()
    """Names of its template parameters, in order; `T=U` where the default is another's name or a
    number."""
    condition: str
    """In C++, on one line."""
    message: str = ""
    path: str
    line: int
    arch: str = ""
    """Compute capability that it belongs to (`90`); empty for all."""
    is_conditional: bool = False
    """Whether it stands in a block of its function, and so may not always apply."""
    is_checkable: bool = False
    """Whether it holds for every use of the entity and its parameters alone decide it: it is
    asserted unconditionally, by the only definition of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MmaFamily:
    """Atoms of matrix instructions that differ in one extent only."""

    arch: str
    m: int
    ns: tuple[int, ...]
    k: int
    suffix: str
    """What follows the shape in their names, such as `F32F16F16_SS`."""
    path: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SmemAtom:
    """A block of a shared-memory layout that tiles are made of."""

    name: str
    """Such as `Layout_K_SW128_Atom`."""
    bits: tuple[int, ...]
    """Its extents, the one of `contiguous` in bits, to be divided by those of an element."""
    contiguous: int
    """Which extent is contiguous in memory."""
    path: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MinedTree:
    """All that was mined from one tree."""

    key: str
    """Hash of the texts that it was mined from."""
    root: str
    """Where the tree lay; its headers are in `include/` there."""
    origin: str
    """In words, such as `nvidia-cutlass 4.2.0.0`."""
    constraints: tuple[Constraint, ...]
    families: tuple[MmaFamily, ...]
    smem_atoms: tuple[SmemAtom, ...]
    atoms: frozenset[str]
    """Every name in the tree that is written as an atom's: `SM90_…`."""
    headers: frozenset[str]
    """Paths as they stand in an `#include`."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "schema": SCHEMA,
            "key": self.key,
            "root": self.root,
            "origin": self.origin,
            "constraints": [asdict(each) for each in self.constraints],
            "families": [asdict(each) for each in self.families],
            "smem_atoms": [asdict(each) for each in self.smem_atoms],
            "atoms": sorted(self.atoms),
            "headers": sorted(self.headers),
        }


def tree_from_json(data: object) -> MinedTree:
    """Return what `MinedTree.to_json` gave.

    Raises:
        ValueError: it is of another schema, or no such JSON.
    """
    if not isinstance(data, Mapping):
        raise ValueError("no mined tree: no JSON object")
    if data.get("schema") != SCHEMA:
        raise ValueError(f"expected schema {SCHEMA}, found {data.get('schema')!r}; mine it again")
    try:
        return MinedTree(
            key=data["key"],
            root=data["root"],
            origin=data["origin"],
            constraints=tuple(
                Constraint(**{**each, "parameters": tuple(each["parameters"])})
                for each in data["constraints"]
            ),
            families=tuple(
                MmaFamily(**{**each, "ns": tuple(each["ns"])}) for each in data["families"]
            ),
            smem_atoms=tuple(
                SmemAtom(**{**each, "bits": tuple(each["bits"])}) for each in data["smem_atoms"]
            ),
            atoms=frozenset(data["atoms"]),
            headers=frozenset(data["headers"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no mined tree: {error}") from error
