"""Seeds of a search: candidates there before it begins, of the problem, files and earlier runs.

Resolved once, before anything starts, and kept in the run folder: a resumed run has the same
seeds, whatever became of the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from kopt.candidate import SEED_PROGRAMMER, Candidate, Language
from kopt.data.atomic import store_error, write_bytes
from kopt.data.best import Ranked, rank_candidates
from kopt.data.fold import RunState, fold
from kopt.data.journal_files import JOURNAL_FOLDER, read_events
from kopt.data.problems.file_source import read_source
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError, StoreError
from kopt.problem import CANDIDATE_CLASS, Problem
from kopt.prompts.language import language_of
from kopt.prompts.modules import defines_candidate
from kopt.prompts.parsing import parsed

SEEDS_FILE = "seeds.json"
GIVEN_STRATEGY = "the kernel that the problem comes with"

Seeds = dict[str, tuple[Candidate, ...]]
"""Problem id to the candidates its searches begin with, in order, each once."""


def resolve_seeds(
    paths: Sequence[str], problems: Sequence[Problem], *, warn: Callable[[str], None]
) -> Seeds:
    """Return each problem's seeds: the kernel it comes with, then those of the paths, in order.

    A file is a candidate of every problem. A run folder gives its best correct candidate of each
    problem, found by the problem's id, or else by its name.

    Args:
        paths: of files that define `ModelNew`, and of run folders.
        problems: of this run.
        warn: told in a line where a run has nothing for a problem, or only by its name.

    Raises:
        ConfigError: a path is not there, or is neither a candidate's file nor a run folder.
        StoreError: the journal of a run, or the source of its best, is damaged.
    """
    found: dict[str, dict[str, Candidate]] = {problem.problem_id: {} for problem in problems}
    for problem in problems:
        if problem.given:
            candidate = _candidate(problem.given, strategy=GIVEN_STRATEGY)
            found[problem.problem_id][candidate.candidate_id] = candidate
    for text in paths:
        path = Path(text).expanduser()
        if path.is_dir():
            given = _best_of_run(path, problems, warn)
        else:
            candidate = _of_file(path)
            given = {problem.problem_id: candidate for problem in problems}
        for problem_id, candidate in given.items():
            found[problem_id].setdefault(candidate.candidate_id, candidate)
    return {key: tuple(candidates.values()) for key, candidates in found.items() if candidates}


def keep_seeds(run: RunDir, seeds: Seeds) -> None:
    """Write the seeds of a run into its folder.

    Raises:
        StoreError: they cannot be written.
    """
    record = {key: [asdict(candidate) for candidate in given] for key, given in seeds.items()}
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    write_bytes(run.path / SEEDS_FILE, text.encode("utf-8", errors="replace"))


def kept_seeds(run: RunDir) -> Seeds | None:
    """Return the seeds that a run folder holds; None where none were kept.

    Raises:
        StoreError: they cannot be read.
    """
    path = run.path / SEEDS_FILE
    try:
        record = json.loads(path.read_bytes())
        return {
            key: tuple(Candidate(**fields) for fields in given) for key, given in record.items()
        }
    except FileNotFoundError:
        return None
    except OSError as error:
        raise store_error(path, error) from error
    except (AttributeError, TypeError, ValueError) as error:
        raise StoreError(str(path), f"not a run's seeds: {error}") from error


def _of_file(path: Path) -> Candidate:
    source = read_source(path)
    module = parsed(source)
    if module is None or not defines_candidate(module):
        raise ConfigError(
            f"search.seeds: {path}: expected a Python module that defines {CANDIDATE_CLASS}, "
            "or a run folder"
        )
    return _candidate(source, strategy=path.name)


def _candidate(source: str, *, strategy: str) -> Candidate:
    return Candidate(
        source=source, language=language_of(source), strategy=strategy, programmer=SEED_PROGRAMMER
    )


def _best_of_run(
    path: Path, problems: Sequence[Problem], warn: Callable[[str], None]
) -> dict[str, Candidate]:
    run = RunDir.open(path)
    state = fold(read_events(run.path)) if (run.path / JOURNAL_FOLDER).is_dir() else RunState()
    ranked = rank_candidates(state)
    ids_by_name: dict[str, str] = {}
    for search in state.searches.values():
        if search.started.problem in ranked:
            ids_by_name.setdefault(search.started.problem_name, search.started.problem)
    given = {}
    for problem in problems:
        best = _best_for(problem, ranked, ids_by_name)
        if best is None:
            warn(f"search.seeds: {path} has no correct candidate of {problem.name}")
            continue
        if best.evaluation["problem"] != problem.problem_id:
            warn(
                f"search.seeds: {path} searched {problem.name} with another source or dtype; "
                "its best is tried all the same"
            )
        given[problem.problem_id] = Candidate(
            source=run.artefacts.get(best.made.source),
            language=cast("Language", best.made.language),  # a journal holds what Candidate held
            strategy=f"best of {run.name}: {best.made.strategy}".removesuffix(": "),
            programmer=SEED_PROGRAMMER,
        )
    return given


def _best_for(
    problem: Problem, ranked: dict[str, list[Ranked]], ids_by_name: dict[str, str]
) -> Ranked | None:
    problem_id = problem.problem_id if problem.problem_id in ranked else None
    problem_id = problem_id or ids_by_name.get(problem.name)
    return None if problem_id is None else ranked[problem_id][0]
