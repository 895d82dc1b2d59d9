"""`mode=compiled`, its beginning: models taken apart into problems, before the searches.

`runs/NAME/compiled/MODEL/` holds the order, the record (`apart.json`), the compiled code and the
problems as files; each file can be searched on its own (`kopt run problem=FILE`).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kopt.actors.compiled.order import Order, carry_out, order_from_json
from kopt.cli.evaluate import first_device
from kopt.compiled.families import family_of_group
from kopt.compiled.record import Apart, from_json
from kopt.config import RunConfig
from kopt.data.atomic import make_folder, write_bytes
from kopt.data.rundir import RunDir
from kopt.environment import cache_dir
from kopt.errors import ConfigError, ProblemError, StoreError
from kopt.identity import canonical_json
from kopt.problem import Problem

FOLDER = "compiled"
"""Of the run folder."""
Taken = dict[str, tuple[Path, Apart]]
"""What was taken apart: the folder that it lies in, and what came of it, by how it was compiled."""


def models_folder(run: RunDir) -> Path:
    """Return where the models of a run lie."""
    return run.path / FOLDER


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenModel:
    """A model that was taken apart."""

    order: Order
    apart: Apart

    @property
    def folder(self) -> Path:
        """Where its record lies."""
        return Path(self.order.folder)

    @property
    def key(self) -> str:
        """Equal where models are compiled alike."""
        return canonical_json({**asdict(self.order), "folder": ""})


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledJob:
    """A job whose models were taken apart."""

    config: RunConfig
    run: RunDir
    models: Sequence[TakenModel]

    @property
    def open_models(self) -> list[TakenModel]:
        """Those that the strategist is to be asked about, and was not yet."""
        if self.config.pipeline.kind != "agents":
            return []
        return [m for m in self.models if m.apart.choices and not m.apart.strategist]


def take_models_apart(
    config: RunConfig, models: Sequence[Problem], *, run: RunDir, taken: Taken | None = None
) -> list[TakenModel]:
    """Take each model apart, with the groups that the rule makes.

    Args:
        config: of the run.
        models: to be compiled.
        run: its folder.
        taken: models that other jobs took apart, copied where they are compiled alike; added to.

    Raises:
        ConfigError: a model's file breaks its contract, or the device asked for is not here.
        StoreError: a record cannot be read, or the folder not be written.
    """
    device = first_device(config)
    found = []
    for model in models:
        folder = models_folder(run) / model.file_name
        order = Order(
            problem=model,
            folder=str(folder),
            cache=str(cache_dir() / "inductor"),
            device=device,
            module_mode=config.evaluate.module_mode,
            max_autotune=config.compiled.max_autotune,
            merge=config.compiled.fuse,
        )
        key = TakenModel(order=order, apart=Apart(model=model.name)).key
        earlier = None if taken is None else taken.get(key)
        if earlier is not None:
            shutil.copytree(earlier[0], folder, dirs_exist_ok=True)
            apart = earlier[1]
        else:
            apart = _taken_apart(order, timeout_s=config.compiled.timeout_s)
        if taken is not None:
            taken.setdefault(key, (folder, apart))
        found.append(TakenModel(order=order, apart=apart))
    return found


def begun_models(run: RunDir) -> list[TakenModel]:
    """Return the models that an earlier sitting took apart, before its searches began.

    Raises:
        StoreError: a record cannot be read.
    """
    found = []
    for path in sorted(models_folder(run).glob("*/apart.json")):
        apart = from_json(path.read_bytes(), where=str(path))
        try:
            order = order_from_json((path.parent / "order.json").read_bytes())
        except (OSError, ValueError) as error:
            raise StoreError(str(path.parent / "order.json"), f"no order: {error}") from None
        # The run may lie elsewhere now; and what was decided is decided from the journal again.
        order = replace(order, folder=str(path.parent), wishes=())
        found.append(TakenModel(order=order, apart=apart))
    return found


def problems_of(models: Sequence[TakenModel]) -> list[Problem]:
    """Return the problems that models were cut into, each once; they are written as files too.

    Raises:
        StoreError: a folder cannot be written.
    """
    found: dict[str, Problem] = {}
    for model in models:
        for problem in _problems(model.apart, model.folder):
            found.setdefault(problem.problem_id, problem)
    return list(found.values())


def _taken_apart(order: Order, *, timeout_s: float) -> Apart:
    sys.stderr.write(f"kopt: {order.problem.name}: compiling, and taking apart\n")
    try:
        apart = carry_out(order, timeout_s=timeout_s)
    except ProblemError as error:
        raise ConfigError(str(error)) from error
    sys.stderr.write(f"kopt: {order.problem.name}: {words_of(apart)}\n")
    return apart


def words_of(apart: Apart) -> str:
    """Return what came of a model in a line."""
    if apart.cause:
        return f"{apart.cause}: {apart.reason}; the compiled baseline is kept"
    kept = sum(bool(sub.kept) for sub in apart.subkernels)
    launches = sum(kernel.launches for kernel in apart.kernels)
    return (
        f"{len(apart.kernels)} generated kernel(s) in {launches} launch(es), "
        f"{len(apart.library_calls)} library call(s); {len(apart.problems)} problem(s), "
        f"{kept} group(s) kept as they are; compiled in {apart.compile_s:.1f} s, "
        f"cut in {apart.cut_s:.1f} s"
    )


def _problems(apart: Apart, folder: Path) -> list[Problem]:
    """The problems of a model, written as files too."""
    if apart.recipe is not None:
        write_bytes(folder / "output_code.py", apart.recipe.source.encode("utf-8"))
    if apart.problems:
        make_folder(folder / "problems")
    launches = {sub.problem: len(sub.group.places) for sub in apart.subkernels if sub.problem}
    problems = []
    for name, source in apart.problems.items():
        write_bytes(folder / "problems" / f"{name.rpartition('/')[2]}.py", source.encode("utf-8"))
        family = family_of_group(launches.get(name, 1))
        problems.append(Problem(name=name, source=source, family=family))
    return problems
