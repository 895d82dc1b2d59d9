"""The iteration space of a kernel: which dimensions of its values are the same loop.

Each dimension of a value is a list of atoms. An atom is a loop of some size; a reshape may split
one, and a map makes the atoms of its arguments' dimensions one and the same. What cannot be made
the same (a value and its transpose, 4·6 against 6·4) does not belong in one kernel: `Clash`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kopt.actors.rewriter.codegen.ir import (
    Const,
    Expand,
    Iota,
    Load,
    Map,
    Permute,
    Reduce,
    Reshape,
    Scan,
    Value,
    contiguous_strides,
    strides_in_memory,
)


class Clash(Exception):
    """These values do not share one iteration space."""


class Atom:
    """One loop. Mutable while a space is being found: it may be split, or united with another."""

    __slots__ = ("parts", "same_as", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.same_as: Atom | None = None
        self.parts: tuple[Atom, Atom] | None = None

    def roots(self) -> list[Atom]:
        """Return the whole atoms that this one is made of, outermost first."""
        atom = self
        while atom.same_as is not None:
            atom = atom.same_as
        if atom.parts is None:
            return [atom]
        return atom.parts[0].roots() + atom.parts[1].roots()


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The index of one value in memory: offset + Σ atom index · stride."""

    strides: dict[Atom, int]
    """Elements to step for each whole atom; atoms not named do not matter."""
    offset: int


class Space:
    """The atoms of a set of values, operands before users."""

    def __init__(self, values: Iterable[Value], *, given: frozenset[Value] = frozenset()) -> None:
        """Find the atoms.

        Args:
            values: all values of the kernel in topological order.
            given: those among them that are read from memory, whatever they are made of.

        Raises:
            Clash: the values do not fit one space.
        """
        self._dims: dict[Value, list[list[Atom]]] = {}
        self._given = given
        self._reads: dict[Value, list[tuple[Atom, int]]] = {}
        for value in values:
            self._dims[value] = self._place(value)
            self._check(value)
        self._align()
        # A later union can bring two atoms of an earlier value together.
        for value in self._dims:
            self._check(value)

    def _align(self) -> None:
        """Let reductions of equal shape run in the same loops, though nothing else ties them."""
        first: dict[tuple[tuple[int, ...], tuple[int, ...]], Value] = {}
        for value in self._dims:
            if not isinstance(value, Reduce) or value in self._given:
                continue
            leader = first.setdefault((value.arg.shape, value.dims), value.arg)
            for mine, theirs in zip(self._dims[value.arg], self._dims[leader], strict=True):
                if mine and theirs:
                    unite(mine, theirs)

    def atoms(self, value: Value) -> list[Atom]:
        """Return the whole atoms that a value varies over, in the order of its dimensions."""
        return [root for dim in self._dims[value] for atom in dim for root in atom.roots()]

    def along(self, value: Value, dim: int) -> list[Atom]:
        """Return the whole atoms of one dimension of a value."""
        return [root for atom in self._dims[value][dim] for root in atom.roots()]

    def reduced(self, value: Reduce | Scan) -> list[Atom]:
        """Return the whole atoms that a reduction or a scan runs over."""
        dims = value.dims if isinstance(value, Reduce) else (value.dim,)
        places = self._dims[value.arg]
        return [root for dim in dims for atom in places[dim] for root in atom.roots()]

    def read(self, value: Value) -> Access:
        """Return the index of a load, of a value given in memory, or the number of an iota."""
        strides: dict[Atom, int] = {}
        for atom, stride in self._reads[value]:
            _spread(strides, atom, stride)
        offset = value.offset if isinstance(value, Load) else 0
        return Access(strides=strides, offset=value.start if isinstance(value, Iota) else offset)

    def bounds(self, value: Value) -> list[tuple[Access, int, int]]:
        """Return the indices that a load checks, each with the range in which it may read."""
        if not isinstance(value, Load):
            return []
        found = []
        for dim, low, high in value.bounds:
            strides: dict[Atom, int] = {}
            for atom in self._dims[value][dim]:
                _spread(strides, atom, 1)
            found.append((Access(strides=strides, offset=0), low, high))
        return found

    def write(self, value: Value) -> Access:
        """Return the index at which a value is stored, row-major in its own shape.

        Raises:
            Clash: the value repeats along a dimension (torch does that with a view).
        """
        strides: dict[Atom, int] = {}
        steps = contiguous_strides(value.shape)
        for dim, size, step in zip(self._dims[value], value.shape, steps, strict=True):
            if size > 1 and not dim:
                raise Clash("a repeated value has no place in memory")
            inner = step
            for root in reversed([root for atom in dim for root in atom.roots()]):
                strides[root] = inner
                inner *= root.size
        return Access(strides=strides, offset=0)

    def _place(self, value: Value) -> list[list[Atom]]:
        if value in self._given:
            strides = strides_in_memory(value)
            if strides is None:
                raise Clash("a view in memory that is not affine")
            return self._read_dims(value, strides)
        if isinstance(value, Load):
            dims = self._read_dims(value, value.strides)
            for dim, _, _ in value.bounds:
                dims[dim] = dims[dim] or [Atom(value.shape[dim])]
            return dims
        if isinstance(value, Iota):
            steps = tuple(value.step if d == value.dim else 0 for d in range(len(value.shape)))
            return self._read_dims(value, steps)
        if isinstance(value, Const):
            return [[] for _ in value.shape]
        if isinstance(value, Map):
            return self._map_dims(value)
        dims = self._dims[value.arg]
        if isinstance(value, Reduce):
            for dim in value.dims:
                self._vary(value.arg, dim)
            return [list(d) for place, d in enumerate(dims) if place not in value.dims]
        if isinstance(value, Scan):
            self._vary(value.arg, value.dim)
            return [list(d) for d in dims]
        if isinstance(value, Permute):
            return [list(dims[d]) for d in value.dims]
        if isinstance(value, Expand):
            return [list(d) for d in dims]
        return self._reshaped(value)

    def _read_dims(self, value: Value, strides: Sequence[int]) -> list[list[Atom]]:
        dims: list[list[Atom]] = []
        reads: list[tuple[Atom, int]] = []
        for size, stride in zip(value.shape, strides, strict=True):
            if size > 1 and stride != 0:
                atom = Atom(size)
                dims.append([atom])
                reads.append((atom, stride))
            else:
                dims.append([])
        self._reads[value] = reads
        return dims

    def _vary(self, value: Value, dim: int) -> None:
        """Give a dimension along which a value repeats a loop all the same."""
        if not self._dims[value][dim] and value.shape[dim] > 1:
            self._dims[value][dim] = [Atom(value.shape[dim])]

    def _map_dims(self, value: Map) -> list[list[Atom]]:
        dims: list[list[Atom]] = []
        for place, size in enumerate(value.shape):
            found: list[Atom] = []
            for arg in value.args:
                own = place - (len(value.shape) - len(arg.shape))
                if own < 0 or not self._dims[arg][own]:
                    continue
                if not found:
                    found = list(self._dims[arg][own])
                else:
                    unite(found, self._dims[arg][own])
            if not found and size > 1:
                found = [Atom(size)]
            dims.append(found)
        return dims

    def _reshaped(self, value: Reshape) -> list[list[Atom]]:
        arg = value.arg
        flat: list[Atom] = []
        for dim in range(len(arg.shape)):
            self._vary(arg, dim)
            flat.extend(root for atom in self._dims[arg][dim] for root in atom.roots())
        dims: list[list[Atom]] = []
        queue = list(reversed(flat))
        for size in value.shape:
            dim_atoms: list[Atom] = []
            missing = size
            while missing > 1:
                atom = queue.pop()
                if missing % atom.size == 0:
                    dim_atoms.append(atom)
                    missing //= atom.size
                elif atom.size % missing == 0:
                    outer, inner = _split(atom, missing)
                    dim_atoms.append(outer)
                    queue.append(inner)
                    missing = 1
                else:
                    raise Clash(f"a reshape cuts a loop of {atom.size} at {missing}")
            dims.append(dim_atoms)
        return dims

    def _check(self, value: Value) -> None:
        atoms = self.atoms(value)
        if len(set(atoms)) != len(atoms):
            raise Clash("one loop would have to run along two dimensions of a value")


def unite(first: Sequence[Atom], second: Sequence[Atom]) -> None:
    """Make two lists of atoms the same loops, splitting where sizes ask for it.

    Raises:
        Clash: the sizes have no common refinement.
    """
    left = [root for atom in reversed(first) for root in reversed(atom.roots())]
    right = [root for atom in reversed(second) for root in reversed(atom.roots())]
    while left and right:
        a, b = left.pop(), right.pop()
        # An earlier step of this loop may have split or united what was listed before.
        if len(a.roots()) > 1 or len(b.roots()) > 1:
            left.extend(reversed(a.roots()))
            right.extend(reversed(b.roots()))
            continue
        a, b = a.roots()[0], b.roots()[0]
        if a is b:
            continue
        if a.size == b.size:
            b.same_as = a
        elif a.size % b.size == 0:
            outer, inner = _split(a, b.size)
            left.extend((inner, outer))
            right.append(b)
        elif b.size % a.size == 0:
            outer, inner = _split(b, a.size)
            right.extend((inner, outer))
            left.append(a)
        else:
            raise Clash(f"loops of {a.size} and {b.size} have no common refinement")
    if left or right:
        raise Clash("dimensions of different size")


def _split(atom: Atom, outer_size: int) -> tuple[Atom, Atom]:
    outer, inner = Atom(outer_size), Atom(atom.size // outer_size)
    atom.parts = (outer, inner)
    return outer, inner


def _spread(strides: dict[Atom, int], atom: Atom, stride: int) -> None:
    """Add the strides of the whole atoms that an atom has become."""
    roots = atom.roots()
    step = stride
    for root in reversed(roots):
        strides[root] = strides.get(root, 0) + step
        step *= root.size
