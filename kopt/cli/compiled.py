"""`mode=compiled`, its beginning: models taken apart into problems, before the searches.

`runs/NAME/compiled/MODEL/` holds the order, the record (`apart.json`), the compiled code and the
problems as files; each file can be searched on its own (`kopt run problem=FILE`).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from kopt.actors.compiled.order import Order, carry_out
from kopt.cli.evaluate import first_device
from kopt.compiled.families import family_of_group
from kopt.compiled.record import Apart
from kopt.config import RunConfig
from kopt.data.atomic import make_folder, write_bytes
from kopt.data.rundir import RunDir
from kopt.environment import cache_dir
from kopt.errors import ConfigError, ProblemError
from kopt.identity import canonical_json
from kopt.problem import Problem

FOLDER = "compiled"
"""Of the run folder."""
Taken = dict[str, tuple[Path, Apart]]
"""What was taken apart: the folder that it lies in, and what came of it, by how it was compiled."""


def models_folder(run: RunDir) -> Path:
    """Return where the models of a run lie."""
    return run.path / FOLDER


def take_models_apart(
    config: RunConfig, models: Sequence[Problem], *, run: RunDir, taken: Taken | None = None
) -> list[Problem]:
    """Take each model apart; return the problems that came of them, each once.

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
    found: dict[str, Problem] = {}
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
        key = canonical_json({**asdict(order), "folder": ""})
        earlier = None if taken is None else taken.get(key)
        if earlier is not None:
            shutil.copytree(earlier[0], folder, dirs_exist_ok=True)
            apart = earlier[1]
        else:
            apart = _taken_apart(order, timeout_s=config.compiled.timeout_s)
        if taken is not None:
            taken.setdefault(key, (folder, apart))
        for problem in _problems(apart, folder):
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
