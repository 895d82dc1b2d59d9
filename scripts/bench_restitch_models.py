"""Which KernelBench models are stitched again, and their sizes where a host is small.

Twenty of levels 2 and 3: products, convolutions and norms with what follows them, in training mode
as KernelBench runs them, an attention, blocks of networks. `small` takes the module's own constants
down, name by name, until the model runs: a batch of 2, images and widths of a few dozen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from kopt.data.problems import open_sources
from kopt.data.problems.config import KernelBenchConfig, ProblemsConfig
from kopt.problem import Problem

MODELS = (
    "level2/1",
    "level2/12",
    "level2/14",
    "level2/17",
    "level2/22",
    "level2/29",
    "level2/33",
    "level2/37",
    "level2/40",
    "level2/45",
    "level2/62",
    "level2/76",
    "level2/88",
    "level2/95",
    "level3/1",
    "level3/2",
    "level3/13",
    "level3/17",
    "level3/31",
    "level3/43",
)
_BATCH = re.compile(r"batch", re.IGNORECASE)
_LONG = re.compile(
    r"height|width|depth|length|size|seq|features|dim|hidden|embd|channels|block", re.IGNORECASE
)
_STEPS = ((32, True), (64, True), (64, False), (None, True))
"""Greatest constant that is kept, and whether a list of sizes is cut too; the smallest first."""


def models(names: tuple[str, ...], *, clone: str | None) -> list[Problem]:
    """Return the problems of these names.

    Raises:
        ConfigError: KernelBench is not there.
    """
    section = KernelBenchConfig() if clone is None else KernelBenchConfig(path=clone)
    source = open_sources(ProblemsConfig(kernelbench=section))["kernelbench"]
    if (reason := source.missing()) is not None:
        from kopt.errors import ConfigError

        raise ConfigError(reason)
    return [source.load(name) for name in names]


def smaller(problem: Problem) -> Iterator[Problem]:
    """Yield the problem at sizes that a small host runs, the smallest first; its own last."""
    for most, is_listed in _STEPS:
        yield replace(problem, source=_cut(problem.source, most=most, lists=is_listed))
    yield problem


def _cut(source: str, *, most: int | None, lists: bool) -> str:
    lines = source.splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        try:
            value = ast.literal_eval(node.value)
        except ValueError:
            continue
        made = _smaller(name, value, most=most, lists=lists)
        if made != value:
            lines[node.lineno - 1 : node.end_lineno] = [f"{name} = {made!r}\n"]
    return "".join(lines)


def _smaller(name: str, value: object, *, most: int | None, lists: bool) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and _BATCH.search(name):
        return min(value, 2)
    if most is None:
        return value
    if isinstance(value, int) and (_LONG.search(name) or value > 4 * most):
        while value > most and value % 2 == 0:
            value //= 2
        return value
    if lists and isinstance(value, list | tuple) and all(isinstance(each, int) for each in value):
        return type(value)(_smaller("size", each, most=most, lists=False) for each in value)
    return value
