"""A kernel before it is printed: loops, passes over the row, and what each pass reads and writes.

The space of a kernel falls into rows × columns. Columns are the loops that are reduced (or, with
no reduction, the innermost one); where the innermost loop in memory is a kept one, it becomes the
lanes: neighbouring rows worked on together. Level 0 is what can be computed from loads; a
reduction lies one level above what it reduces. Pass p computes the reductions of level p + 1 and
stores the full-size results of level p, recomputing element-wise values from loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from kopt.actors.rewriter.codegen.ir import (
    Iota,
    Load,
    Reduce,
    Scan,
    Value,
    operands,
    stored_base,
    strides_in_memory,
)
from kopt.actors.rewriter.codegen.space import Access, Atom, Clash, Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """offset + Σ loop index · stride, over the loops of a program."""

    offset: int
    rows: tuple[int, ...]
    cols: tuple[int, ...]
    lane: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One walk over the columns of a row."""

    values: tuple[Value, ...]
    """Full-size values to compute for each element, operands first (loads and iotas too)."""
    reductions: tuple[Reduce, ...]
    stores: tuple[Value, ...]
    """Full-size values to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One kernel."""

    rows: tuple[int, ...]
    """Sizes of the row loops, outermost first; () is one row."""
    cols: tuple[int, ...]
    """Sizes of the column loops, outermost first."""
    lane: int | None
    """Size of the lane loop, if neighbouring rows are worked on together."""
    passes: tuple[Pass, ...]
    row_values: tuple[tuple[Value, ...], ...]
    """row_values[p]: values of one row known before pass p; the last entry, after all passes."""
    row_stores: tuple[tuple[Value, ...], ...]
    """row_stores[p]: which of row_values[p] are written."""
    reads: dict[Value, Index]
    """Where each load, each value from another kernel and each iota is."""
    writes: dict[Value, Index]
    """Where each output goes, row-major in its own shape."""
    bounds: dict[Value, tuple[tuple[Index, int, int], ...]]
    """Of loads that may reach past their tensor: an index, and from where to where it may read."""
    has_scan: bool
    """Whether the columns must be walked in order."""

    @property
    def num_rows(self) -> int:
        """Rows, lanes included."""
        return prod(self.rows) * (self.lane or 1)

    @property
    def num_cols(self) -> int:
        """Columns of a row."""
        return prod(self.cols)

    @property
    def has_reduction(self) -> bool:
        """Whether any pass reduces."""
        return any(step.reductions for step in self.passes)

    @property
    def values(self) -> tuple[Value, ...]:
        """All values, each once, operands first."""
        everything = [v for row in self.row_values for v in row]
        everything += [v for step in self.passes for v in (*step.values, *step.reductions)]
        return tuple(dict.fromkeys(everything))


def kernel_values(members: frozenset[Value], outputs: Sequence[Value]) -> list[Value]:
    """Return what a kernel of these members touches, operands first.

    Values that are computed elsewhere, and affine views of them, end the walk: they are read from
    memory.
    """
    found: list[Value] = []
    seen: set[Value] = set()

    def walk(value: Value) -> None:
        if value in seen:
            return
        seen.add(value)
        if not is_given(value, members):
            for below in operands(value):
                walk(below)
        found.append(value)

    for output in outputs:
        walk(output)
    return found


def is_given(value: Value, members: frozenset[Value]) -> bool:
    """Whether a value is computed elsewhere, or is an affine view of one that is."""
    base = stored_base(value)
    if base is None or base in members:
        return False
    return strides_in_memory(value) is not None


def build(members: frozenset[Value], outputs: Sequence[Value]) -> Program:
    """Return the program that computes the outputs from the members.

    Args:
        members: maps, reductions and scans computed here.
        outputs: what is written to memory, some of the members or views of them.

    Raises:
        Clash: they do not make one kernel.
    """
    values = kernel_values(members, outputs)
    given = frozenset(v for v in values if is_given(v, members))
    space = Space(values, given=given)
    columns = _columns(space, members)
    order = _order(space, values, outputs, given)
    accesses: dict[Value, Access] = {
        v: space.read(v) for v in values if v in given or isinstance(v, Load | Iota)
    }
    writes = {v: space.write(v) for v in outputs}
    bounds = {v: found for v in accesses if (found := space.bounds(v))}
    checked = [access for found in bounds.values() for access, _, _ in found]
    every = [*accesses.values(), *writes.values(), *checked]
    kept = _merged([a for a in order if a not in columns], every)
    reduced = _merged([a for a in order if a in columns], every)
    lane: tuple[list[Atom], ...] = ()
    if not reduced:
        kept, reduced = kept[:-1], kept[-1:]
    elif kept and order[-1] not in columns:
        kept, lane = kept[:-1], (kept[-1],)
    return _assembled(
        is_reversed=_direction(values, members),
        values=values,
        members=members,
        outputs=outputs,
        space=space,
        loops=(kept, reduced, list(lane)),
        accesses=accesses,
        writes=writes,
        bounds=bounds,
    )


def _columns(space: Space, members: frozenset[Value]) -> frozenset[Atom]:
    found: frozenset[Atom] | None = None
    for member in members:
        if isinstance(member, Reduce | Scan):
            own = frozenset(space.reduced(member))
            if found is not None and own != found:
                raise Clash("reductions over different dimensions")
            found = own
    return found or frozenset()


def _direction(values: Sequence[Value], members: frozenset[Value]) -> bool:
    """Whether the columns run from the last to the first, as all scans must agree."""
    directions = {v.reverse for v in values if isinstance(v, Scan) and v in members}
    if len(directions) > 1:
        raise Clash("scans in both directions")
    return directions == {True}


def _order(
    space: Space, values: Sequence[Value], outputs: Sequence[Value], given: frozenset[Value]
) -> list[Atom]:
    """Return all atoms as they should be nested: by the memory order of the widest output."""
    everything = {atom for value in values for atom in space.atoms(value)}

    def is_full(value: Value) -> bool:
        return len(space.atoms(value)) == len(everything)

    scans = [v for v in values if isinstance(v, Scan) and v not in given]
    for output in outputs:
        if is_full(output):
            return space.atoms(output)
    for value in values:
        if (value in given or isinstance(value, Load)) and is_full(value) and not scans:
            strides = space.read(value).strides
            place = {atom: n for n, atom in enumerate(space.atoms(value))}
            return sorted(place, key=lambda a: (-abs(strides.get(a, 0)), place[a]))
    for value in values:
        if is_full(value):
            return space.atoms(value)
    raise Clash("no value runs over all loops")


def _merged(atoms: Sequence[Atom], accesses: Sequence[Access]) -> list[list[Atom]]:
    """Join neighbouring atoms that every access walks through as one."""
    loops: list[list[Atom]] = []
    for atom in atoms:
        if loops and all(
            access.strides.get(loops[-1][-1], 0) == access.strides.get(atom, 0) * atom.size
            for access in accesses
        ):
            loops[-1].append(atom)
        else:
            loops.append([atom])
    return loops


def _assembled(
    *,
    is_reversed: bool,
    values: Sequence[Value],
    members: frozenset[Value],
    outputs: Sequence[Value],
    space: Space,
    loops: tuple[list[list[Atom]], list[list[Atom]], list[list[Atom]]],
    accesses: dict[Value, Access],
    writes: dict[Value, Access],
    bounds: dict[Value, list[tuple[Access, int, int]]],
) -> Program:
    kept, reduced, lanes = loops
    columns = {atom for loop in reduced for atom in loop}
    level: dict[Value, int] = {}
    for value in values:
        below = 0
        if value not in accesses:
            below = max((level[arg] for arg in operands(value)), default=0)
        level[value] = below + 1 if isinstance(value, Reduce) and value in members else below
    full = {v for v in values if any(atom in columns for atom in space.atoms(v))}
    top = max([level[v] for v in outputs] + [level[v] for v in values if isinstance(v, Reduce)])
    passes, row_values, row_stores = [], [], []
    for number in range(top + 1):
        reductions = [
            v for v in values if isinstance(v, Reduce) and v in members and level[v] == number + 1
        ]
        stores = [v for v in outputs if v in full and level[v] == number]
        wanted = _full_below([*(r.arg for r in reductions), *stores], full, accesses)
        passes.append(
            Pass(
                values=tuple(v for v in values if v in wanted),
                reductions=tuple(reductions),
                stores=tuple(stores),
            )
        )
    for number in range(top + 1):
        at_level = [v for v in values if v not in full and level[v] == number]
        row_values.append(tuple(v for v in at_level if not isinstance(v, Reduce) or v in accesses))
        row_stores.append(tuple(v for v in outputs if v not in full and level[v] == number))
    while passes and not (passes[-1].reductions or passes[-1].stores):
        passes.pop()
    if len(row_values) == len(passes):
        row_values.append(())
        row_stores.append(())

    def index(access: Access) -> Index:
        def of(loop_list: list[list[Atom]]) -> tuple[int, ...]:
            return tuple(access.strides.get(loop[-1], 0) for loop in loop_list)

        lane, cols, offset = of(lanes), of(reduced), access.offset
        if is_reversed:
            offset += sum(s * (n - 1) for s, n in zip(cols, sizes(reduced), strict=True))
            cols = tuple(-stride for stride in cols)
        return Index(offset=offset, rows=of(kept), cols=cols, lane=lane[0] if lane else 0)

    def sizes(loop_list: list[list[Atom]]) -> tuple[int, ...]:
        return tuple(prod(atom.size for atom in loop) for loop in loop_list)

    return Program(
        rows=sizes(kept),
        cols=sizes(reduced),
        lane=sizes(lanes)[0] if lanes else None,
        passes=tuple(passes),
        row_values=tuple(row_values),
        row_stores=tuple(row_stores),
        reads={v: index(a) for v, a in accesses.items()},
        writes={v: index(a) for v, a in writes.items()},
        bounds={
            v: tuple((index(a), low, high) for a, low, high in found) for v, found in bounds.items()
        },
        has_scan=any(isinstance(v, Scan) and v in members for v in values),
    )


def _full_below(
    roots: Sequence[Value], full: set[Value], accesses: dict[Value, Access]
) -> set[Value]:
    found: set[Value] = set()
    stack = [root for root in roots if root in full]
    while stack:
        value = stack.pop()
        if value in found:
            continue
        found.add(value)
        if value not in accesses:
            stack.extend(arg for arg in operands(value) if arg in full)
    return found
