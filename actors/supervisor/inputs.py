"""Input sets in shared memory: their values, a checksum that they stay, what they give."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from kopt.actors.child.perturb import Perturbation, apply
from kopt.actors.child.plain import Tree, decode
from kopt.actors.child.tensor_spec import Shareable
from kopt.actors.verify.families import FamilyName, FamilyPlan, make_family

WORD_BYTES = 8
ADOPTED_BYTES = 64 << 20
"""A fetched tensor of so much is not copied."""
CHUNK_WORDS = 1 << 22
"""Words of a GPU tensor that are weighted at a time."""


@dataclass(slots=True, kw_only=True)
class JudgedSet:
    """One input set, and the reference's outputs on it."""

    name: str
    """Family and trial: `heavy_tail#1`."""
    case: int = 0
    """0 for what `get_inputs()` gives, and is timed; else which one of `get_input_cases()`."""
    state: int
    """Which weights it is judged with: 0 as constructed, 1 randomised."""
    seed: int
    """Set before each call, for modules that draw."""
    tree: Tree
    """The arguments as JSON, tensors by position in `tensors`."""
    tensors: list[Shareable]
    """Sealed once drawn: no child can change them."""
    checksum: int
    may_alias: bool = False
    """Whether the reference's own outputs share memory with its inputs."""
    devices: tuple[str, ...] = ()
    """Kinds of device that the reference's outputs are on."""
    recipe: Recipe | None = None
    """How its content is made again; None where it is held for good."""
    is_held: bool = True
    """Whether its inputs are in memory."""
    outputs: object = None
    """The reference's, at the problem's own precision, in memory of ours alone; None where they
    are made again when they are needed."""
    outputs64: object = None
    """The reference's in float64, likewise."""

    @property
    def is_own(self) -> bool:
        """Whether it holds what `get_inputs()` gives, which is what is timed."""
        return self.case == 0 and self.name.startswith("own")

    @property
    def is_complete(self) -> bool:
        """Whether all that a comparison takes is in memory."""
        return self.is_held and self.outputs is not None and self.outputs64 is not None

    def arguments(self) -> list[Any]:
        """Return the arguments, tensors mapped."""
        values = decode(self.tree, lambda number: self.tensors[number].tensor)
        assert isinstance(values, list)
        return values

    def close(self) -> None:
        """Let the memory go."""
        close_all(self.tensors)
        self.tensors = []
        self.outputs = self.outputs64 = None
        self.is_held = False


class Recipe(NamedTuple):
    """What the content of an input set is drawn from."""

    base: JudgedSet
    """The problem's own draw."""
    plan: FamilyPlan
    family: FamilyName
    seed: int


def draw_content(judged: JudgedSet, recipe: Recipe) -> None:
    """Fill an input set in; equal recipes give equal content.

    What `get_inputs()` gave is the content of that set, not copied.

    Raises:
        MemoryError: it does not fit.
    """
    if judged.is_own:
        judged.tensors = recipe.base.tensors
    else:
        judged.tensors = [each.like() for each in recipe.base.tensors]
        make_family(
            recipe.base.arguments(),
            plan=recipe.plan,
            name=recipe.family,
            seed=recipe.seed,
            into=judged.arguments(),
        )
    judged.checksum = checksum([each.seal().tensor for each in judged.tensors])
    judged.is_held = True


def close_all(tensors: Iterable[Shareable]) -> None:
    """Give the memory of tensors back, once nobody maps them."""
    for each in tensors:
        each.close()


def checksum(tensors: Sequence[torch.Tensor]) -> int:
    """Return a checksum of the bytes of dense tensors: a tripwire for mutation, at memory speed.

    A CRC-32 on the host; on a GPU a sum of words, each weighted by its place.
    """
    value = 0
    for tensor in tensors:
        if tensor.numel():
            raw = _bytes(tensor) if tensor.device.type == "cpu" else _weighted_sum(tensor)
            value = zlib.crc32(raw, value)
    return value


def _weighted_sum(tensor: torch.Tensor) -> bytes:
    """Return a sum over a tensor's words that knows their order, and its last few bytes."""
    raw = tensor.reshape(-1).view(torch.uint8)
    whole = raw.numel() // WORD_BYTES * WORD_BYTES
    words = raw[:whole].view(torch.int64)
    total = torch.zeros((), dtype=torch.int64, device=tensor.device)
    for begin in range(0, words.numel(), CHUNK_WORDS):
        part = words[begin : begin + CHUNK_WORDS]
        places = torch.arange(begin, begin + part.numel(), device=tensor.device)
        total += (part * (2 * places + 1)).sum()  # modulo 2**64; odd weights lose no bit
    return b"%d %s" % (int(total), bytes(raw[whole:].tolist()))


def _bytes(tensor: torch.Tensor) -> memoryview:
    raw: Any = tensor.reshape(-1).view(torch.uint8).numpy()
    return memoryview(raw)


def sizes(judged: JudgedSet) -> list[int]:
    """Return the number of elements of each tensor."""
    return [each.tensor.numel() for each in judged.tensors]


def perturbed(judged: JudgedSet, change: Perturbation | None, *, seed: int) -> JudgedSet:
    """Return the input set as a timed call was given it, the outputs still to be filled in.

    Raises:
        MemoryError: it does not fit.
    """
    copies = [each.like() for each in judged.tensors]
    for copy, each in zip(copies, judged.tensors, strict=True):
        copy.tensor.copy_(each.tensor)
    if change is not None:
        apply([each.tensor for each in copies], change)
    return JudgedSet(
        name=f"{judged.name}:timed",
        state=judged.state,
        seed=seed,
        tree=judged.tree,
        tensors=[copy.seal() for copy in copies],
        checksum=checksum([copy.tensor for copy in copies]),
    )


def tensor_numbers(tree: Tree) -> list[int]:
    """Return the numbers of a JSON tree's tensors, in its order."""
    numbers: list[int] = []
    decode(tree, numbers.append)
    return numbers


def renumber(tree: Tree, numbers: Sequence[int] | Mapping[int, int]) -> Tree:
    """Return a JSON tree with each tensor's position replaced by its number in a child."""
    if isinstance(tree, dict):
        if set(tree) == {"tensor"}:
            return {"tensor": numbers[tree["tensor"]]}
        return {key: renumber(value, numbers) for key, value in tree.items()}
    if isinstance(tree, list):
        return [renumber(item, numbers) for item in tree]
    return tree


def private(tree: Tree, tensors: Sequence[Shareable]) -> object:
    """Return a tree of outputs whose tensors are ours alone; what was fetched is closed.

    Small ones are copied, so that each does not hold a block of its own; large ones are kept where
    they are, which nobody else maps any more.

    Args:
        tree: as JSON, tensors by position.
        tensors: what a trusted child gave.
    """

    def own(number: int) -> torch.Tensor:
        shared = tensors[number]
        is_large = shared.spec.num_bytes >= ADOPTED_BYTES
        return shared.tensor if is_large else shared.tensor.clone()

    tree_of_ours = decode(tree, own)
    close_all(tensors)
    return tree_of_ours
