"""Which kernel of a run a person gets: the files of `best/`, found by the problem's name.

A run folder has one arm. The folder of a multirun has a run folder for each of its jobs: of one
arm the fastest is taken, and among several the user chooses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kopt.data.fleet_file import is_fleet, read_fleet_file
from kopt.data.recording import listed
from kopt.data.results import OPTIMIZED_SPEEDUP
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError, StoreError
from kopt.problem import Problem

_DEFAULT_MODE = "train"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundKernel:
    """A correct candidate of `best/`, with what it was judged by."""

    path: Path
    """`rankN.py`; beside it lie `rankN.json` and `reference.py`."""
    reference: Path
    problem: Problem
    record: dict[str, Any]
    """Its evaluation, as `rankN.json` has it."""
    module_mode: str
    """`train` or `eval`: how modules were judged."""

    @property
    def speedup(self) -> float:
        """Over the faster baseline."""
        return float(self.record["speedup"] or 0.0)

    @property
    def is_win(self) -> bool:
        """Whether it counts as faster than the reference (kopt.data.results)."""
        interval = self.record["speedup_ci"]
        return self.speedup > OPTIMIZED_SPEEDUP and interval is not None and interval[0] > 1.0


def find_kernel(
    run: str | Path, problem: str | None = None, *, arm: str | None = None, rank: int | None = None
) -> FoundKernel:
    """Return the kernel that a run found for a problem.

    Args:
        run: a run folder, or the folder of a multirun.
        problem: its name, or id; None where the run has a single one.
        arm: of a multirun; None where it has a single one.
        rank: 1 for the fastest; None takes that one too, and only if it is faster than the
            reference.

    Raises:
        ConfigError: there is no such run, problem, arm or rank, several to choose from, or nothing
            was found that is faster.
        StoreError: a file of the run is damaged.
    """
    runs = _runs(Path(run).expanduser(), arm=arm)
    problems = _problems(runs)
    if not problems:
        raise ConfigError(f"{run}: expected a run that began, found no problem in it")
    names = sorted({each.name for each in problems.values()})
    chosen = {key for key, each in problems.items() if problem in (None, key, each.name)}
    if not chosen:
        raise ConfigError(f"{run} has no problem {problem!r}; there are: {listed(names)}")
    if len(chosen) > 1:
        which = "several problems" if problem is None else f"several problems named {problem!r}"
        told = names if problem is None else sorted(chosen)
        raise ConfigError(f"{run} has {which}; name one of: {listed(told)}")
    wanted = problems[chosen.pop()]
    number = 1 if rank is None else rank
    found = [kernel for each in runs for kernel in _of_rank(each, wanted, number)]
    if not found:
        raise ConfigError(_why_none(run, runs, wanted, rank=number))
    best = max(found, key=lambda kernel: kernel.speedup)
    if rank is None and not best.is_win:
        raise ConfigError(
            f"{run} found nothing faster for {wanted.name}: its best correct kernel is "
            f"{best.speedup:.2f}x; go on searching, or pass rank=1 to take it all the same"
        )
    return best


def _runs(folder: Path, *, arm: str | None) -> list[RunDir]:
    """Return the run folders of one arm."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: expected a run folder, found none")
    if not is_fleet(folder):
        run = RunDir.open(folder)
        own = _config(run).get("arm")
        if arm is not None and own is not None and arm != own:
            raise ConfigError(f"{folder} has no arm {arm!r}; it has {own}")
        return [run]
    jobs = read_fleet_file(folder)
    arms = sorted({job.arm for job in jobs})
    if arm is not None and arm not in arms:
        raise ConfigError(f"{folder} has no arm {arm!r}; there are: {listed(arms)}")
    if arm is None and len(arms) > 1:
        raise ConfigError(f"{folder} has several arms; pass arm= one of: {listed(arms)}")
    runs = [RunDir(folder / job.folder) for job in jobs if arm in (None, job.arm)]
    return [run for run in runs if run.path.is_dir()]


def _problems(runs: list[RunDir]) -> dict[str, Problem]:
    """Return the problems by their ids."""
    return {
        path.stem: run.problem(path.stem)
        for run in runs
        for path in sorted(run.problems_folder.glob("*.json"))
    }


def _of_rank(run: RunDir, problem: Problem, rank: int) -> list[FoundKernel]:
    """Return a run's kernel of that rank, if it has one."""
    for path in sorted(run.best_folder.glob(f"*/rank{rank}.json")):
        try:
            record = json.loads(path.read_bytes())
            is_ours = record["problem"] == problem.problem_id
            _ = record["speedup"], record["speedup_ci"], record["device"], record["candidate"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(str(path), f"damaged: {error!r}") from error
        if is_ours:
            evaluate = _config(run).get("evaluate") or {}
            return [
                FoundKernel(
                    path=path.with_suffix(".py"),
                    reference=path.with_name("reference.py"),
                    problem=problem,
                    record=record,
                    module_mode=str(evaluate.get("module_mode", _DEFAULT_MODE)),
                )
            ]
    return []


def _why_none(run: str | Path, runs: list[RunDir], problem: Problem, *, rank: int) -> str:
    if rank > 1:
        return f"{run} keeps no kernel of rank {rank} for {problem.name}; see its best/ folder"
    if not any(each.results_path.is_file() for each in runs):
        return f"{run} has not ended, and best/ is written at its end; `kopt resume {run}` goes on"
    return (
        f"{run} found no correct kernel for {problem.name}; "
        f"`kopt report {run}` shows what was tried"
    )


def _config(run: RunDir) -> dict[str, Any]:
    return dict(run.read_manifest().get("config") or {}) if run.manifest_path.is_file() else {}
