"""Which values share a kernel: clusters grow along their biggest edges while a space holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from kopt.actors.rewriter.codegen.ir import (
    Compute,
    Load,
    Map,
    Unsupported,
    Value,
    operands,
    postorder,
    stored_base,
)
from kopt.actors.rewriter.codegen.program import Program, build, kernel_values
from kopt.actors.rewriter.codegen.space import Clash

SHARED_READ_ELEMENTS = 4096
"""Two clusters that read the same tensor of at least this size try to become one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One kernel of a region."""

    outputs: tuple[Value, ...]
    program: Program


class _Clusters:
    def __init__(self, roots: Sequence[Value]) -> None:
        self.roots = roots
        self.values: list[Value] = [v for v in postorder(roots) if isinstance(v, Compute)]
        self.below = {v: _compute_operands(v) for v in self.values}
        self.users: dict[Value, list[Value]] = {v: [] for v in self.values}
        for value in self.values:
            for producer in self.below[value]:
                self.users[producer].append(value)
        self.wanted = {base for root in roots if (base := stored_base(root)) is not None}
        self.members: dict[int, frozenset[Value]] = {
            n: frozenset([v]) for n, v in enumerate(self.values)
        }
        self.home = {v: n for n, v in enumerate(self.values)}

    def outputs(self, members: frozenset[Value]) -> list[Value]:
        made: list[Value] = []
        for value in self.values:
            if value not in members:
                continue
            if value in self.wanted or any(user not in members for user in self.users[value]):
                made.append(value)
        return made

    def reaches(self, start: int, goal: int, *, around: bool) -> bool:
        """Whether data flows from a cluster to another (`around`: through a third one)."""
        seen: set[int] = set()
        stack = [start]
        while stack:
            here = stack.pop()
            for member in self.members[here]:
                for user in self.users[member]:
                    there = self.home[user]
                    if there == goal and not (around and here == start):
                        return True
                    if there not in seen and there not in (here, goal):
                        seen.add(there)
                        stack.append(there)
        return False

    def merge(self, first: int, second: int) -> bool:
        if first == second:
            return True
        if self.reaches(first, second, around=True) or self.reaches(second, first, around=True):
            return False
        both = self.members[first] | self.members[second]
        try:
            build(both, self.outputs(both))
        except Clash:
            return False
        self.members[first] = both
        for value in self.members.pop(second):
            self.home[value] = first
        return True

    def order(self) -> list[int]:
        """Clusters, producers before consumers."""
        done: list[int] = []
        waiting = sorted(
            self.members, key=lambda n: min(self.values.index(v) for v in self.members[n])
        )
        while waiting:
            for cluster in waiting:
                needs = {self.home[p] for v in self.members[cluster] for p in self.below[v]} - {
                    cluster
                }
                if needs.issubset(done):
                    done.append(cluster)
                    waiting.remove(cluster)
                    break
            else:
                raise AssertionError("clusters form a cycle")
        return done


def _compute_operands(value: Value) -> list[Value]:
    found = []
    for arg in operands(value):
        base = stored_base(arg)
        if base is not None:
            found.append(base)
    return found


def plan(roots: Sequence[Value]) -> list[Stage]:
    """Cut the values below the roots into kernels, in the order in which they run.

    Every root must be a computed value (not a view of a load).

    Raises:
        Unsupported: a value cannot be made by any kernel.
    """
    clusters = _Clusters(roots)
    edges = [(p, v) for v in clusters.values for p in clusters.below[v]]
    edges.sort(key=lambda edge: -prod(edge[0].shape))  # stable: then producers first
    for producer, consumer in edges:
        clusters.merge(clusters.home[producer], clusters.home[consumer])
    _merge_readers(clusters)
    # A merge can open the way for one that failed before it.
    for producer, consumer in edges:
        clusters.merge(clusters.home[producer], clusters.home[consumer])
    order = clusters.order()
    members = _inlined(clusters, order)
    stages = []
    for cluster in order:
        outputs = [
            v
            for v in clusters.outputs(clusters.members[cluster])
            if v in clusters.wanted or _is_read(v, members, cluster)
        ]
        if not outputs:
            continue
        try:
            program = build(members[cluster], outputs)
        except Clash as clash:
            raise Unsupported(str(clash)) from clash
        stages.append(Stage(outputs=tuple(outputs), program=program))
    return stages


def _is_read(value: Value, members: dict[int, frozenset[Value]], home: int) -> bool:
    for cluster, inside in members.items():
        reads = cluster != home and value not in inside
        if reads and any(value in _compute_operands(member) for member in inside):
            return True
    return False


def _merge_readers(clusters: _Clusters) -> None:
    readers: dict[object, list[Value]] = {}
    for value in clusters.values:
        for touched in kernel_values(frozenset([value]), [value]):
            if isinstance(touched, Load) and prod(touched.shape) >= SHARED_READ_ELEMENTS:
                readers.setdefault(touched.source, []).append(value)
    for values in readers.values():
        for value in values[1:]:
            clusters.merge(clusters.home[values[0]], clusters.home[value])


def _inlined(clusters: _Clusters, order: list[int]) -> dict[int, frozenset[Value]]:
    """Return members with cheap element-wise values recomputed where they would be re-read."""
    members = dict(clusters.members)
    for cluster in order:
        inside = members[cluster]
        for value in [p for v in inside for p in clusters.below[v] if p not in inside]:
            extra = _element_wise(value, clusters)
            if extra is None:
                continue
            try:
                build(inside | extra, clusters.outputs(clusters.members[cluster]))
            except Clash:
                continue
            inside = inside | extra
        members[cluster] = inside
    return members


def _element_wise(value: Value, clusters: _Clusters) -> frozenset[Value] | None:
    """All that makes a value, if that is maps of at most one tensor of its size."""
    found: set[Value] = set()
    large_reads: set[object] = set()
    stack: list[Value] = [value]
    while stack:
        here = stack.pop()
        if not isinstance(here, Map):
            return None
        found.add(here)
        for touched in kernel_values(frozenset([here]), [here]):
            if isinstance(touched, Load) and prod(touched.shape) * 2 > prod(value.shape):
                large_reads.add(touched.source)
        stack.extend(clusters.below[here])
    return frozenset(found) if len(large_reads) <= 1 else None
