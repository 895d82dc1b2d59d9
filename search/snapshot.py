"""Snapshots: a search's state as plain JSON values, and back.

A snapshot holds the facts (what was asked where, what became of each slot, which nodes are
closed) and no sums: the tree is a fold over them, so that a stored count can never disagree with
the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kopt.search.base import NodeStatus
from kopt.search.ledger import Ledger
from kopt.search.node import Node
from kopt.search.progress import UNKNOWN, Progress

SNAPSHOT_SCHEMA = 2
READABLE_SCHEMAS = (1, 2)
"""Schema 1 knew neither strategies nor how far a candidate came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldSlot:
    """What the tree keeps of a verdict."""

    candidate: str
    """Candidate id."""
    status: NodeStatus
    """`correct` or `failed`."""
    reward: float
    strategy: str = ""
    """What its programmer meant to do."""
    progress: Progress = UNKNOWN
    """How far it came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSlots:
    """One expansion."""

    parent_node: int
    slots: tuple[ToldSlot | Literal["pending", "cancelled"], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The facts of one search."""

    kind: str
    """Name of the policy."""
    seed: int
    expansions: tuple[AskedSlots, ...]
    """In the order asked."""
    closed: tuple[int, ...]
    """Ids of the closed nodes."""

    @staticmethod
    def of(*, kind: str, seed: int, ledger: Ledger, nodes: Mapping[int, Node]) -> Snapshot:
        """Return the facts that the ledger and the nodes hold."""
        expansions = []
        for asked in ledger.expansions:
            slots: list[ToldSlot | Literal["pending", "cancelled"]] = []
            for index, state in enumerate(asked.states):
                if state == "told":
                    node = nodes[1 + asked.first_slot + index]
                    slots.append(_told(node))
                else:
                    slots.append(state)
            expansions.append(AskedSlots(parent_node=asked.parent_node, slots=tuple(slots)))
        closed = tuple(sorted(node.node_id for node in nodes.values() if node.closed))
        return Snapshot(kind=kind, seed=seed, expansions=tuple(expansions), closed=closed)


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as plain JSON values."""
    return {
        "schema": SNAPSHOT_SCHEMA,
        "kind": snapshot.kind,
        "seed": snapshot.seed,
        "expansions": [
            {"parent_node": expansion.parent_node, "slots": [_slot(s) for s in expansion.slots]}
            for expansion in snapshot.expansions
        ],
        "closed": list(snapshot.closed),
    }


def snapshot_from_json(record: Mapping[str, Any], *, kind: str, seed: int) -> Snapshot:
    """Return the snapshot of a JSON record.

    Args:
        record: what snapshot_to_json returned.
        kind: the policy it must be of.
        seed: the seed it must be of.

    Raises:
        ValueError: it is of another schema, policy or seed.
    """
    if record.get("schema") not in READABLE_SCHEMAS:
        raise ValueError(
            f"the snapshot's schema must be one of {READABLE_SCHEMAS}, "
            f"found {record.get('schema')!r}; read it with the version of kopt that wrote it"
        )
    for name, expected in (("kind", kind), ("seed", seed)):
        if record.get(name) != expected:
            raise ValueError(
                f"the snapshot's {name} must be {expected!r}, found {record.get(name)!r}; "
                "restore it into a search of its own kind and seed"
            )
    return Snapshot(
        kind=kind,
        seed=seed,
        expansions=tuple(
            AskedSlots(
                parent_node=expansion["parent_node"],
                slots=tuple(_slot_from_json(slot) for slot in expansion["slots"]),
            )
            for expansion in record["expansions"]
        ),
        closed=tuple(record["closed"]),
    )


def _told(node: Node) -> ToldSlot:
    if node.candidate is None or node.reward is None:
        raise AssertionError(f"node {node.node_id} was told, but holds no candidate")
    return ToldSlot(
        candidate=node.candidate,
        status=node.status,
        reward=node.reward,
        strategy=node.strategy,
        progress=node.progress,
    )


def _slot(slot: ToldSlot | Literal["pending", "cancelled"]) -> str | dict[str, Any]:
    if isinstance(slot, ToldSlot):
        return {
            "candidate": slot.candidate,
            "status": slot.status,
            "reward": slot.reward,
            "strategy": slot.strategy,
            "stage": slot.progress.stage,
            "error_size": slot.progress.error_size,
        }
    return slot


def _slot_from_json(slot: Any) -> ToldSlot | Literal["pending", "cancelled"]:  # noqa: ANN401 - JSON
    if slot in ("pending", "cancelled"):
        return "pending" if slot == "pending" else "cancelled"
    return ToldSlot(
        candidate=slot["candidate"],
        status=slot["status"],
        reward=slot["reward"],
        strategy=slot.get("strategy", ""),
        progress=Progress(stage=slot.get("stage"), error_size=slot.get("error_size")),
    )
