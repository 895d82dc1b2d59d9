"""The best candidates of a run, as files that a person can use: `best/<problem>/`.

For each problem the fastest correct candidates over all its searches, distinct by id: `rankN.py` is
byte for byte the source that was judged, `rankN.json` its evaluation with where it came from,
`reference.py` the problem, `verify.py` checks and times them with nothing but PyTorch, and
`README.txt` says how to put one into a model.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from kopt.data.atomic import make_folder, store_error, write_bytes
from kopt.data.best_how_to import HOW_TO_FILE, how_to
from kopt.data.fold import RunState
from kopt.data.rundir import RunDir
from kopt.evaluation import EvalJson, rank
from kopt.events import CandidateMade
from kopt.ladder import LADDERS
from kopt.problem import Problem

TEMPLATE = "best_verify.py.txt"
_SETTINGS_MARK = '"@settings@"'
_RANK_FILE = re.compile(r"rank(\d+)\.(?:py|json)")
_DEFAULT_MODE = "train"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A correct candidate of a problem."""

    search: str
    made: CandidateMade
    evaluation: EvalJson


def write_best(run: RunDir, state: RunState, *, keep: int = 3) -> dict[str, list[Path]]:
    """Write or refresh `best/`; safe to repeat, and after a crash in its midst.

    Args:
        run: the run folder; its problems were kept by `RunDir.keep_problem`.
        state: the fold of its journal.
        keep: ranks for each problem, >= 1.

    Returns:
        Problem id to the paths of rank1.py …, the fastest first; problems without a correct
        candidate are left out.

    Raises:
        StoreError: a source or problem is missing, or a file cannot be written.
    """
    folders = best_folders(run, state)
    written: dict[str, list[Path]] = {}
    for problem_id, ranked in rank_candidates(state).items():
        folder = folders[problem_id]
        make_folder(folder)
        paths = [
            _write_rank(run, folder, number, entry)
            for number, entry in enumerate(ranked[:keep], start=1)
        ]
        problem = run.problem(problem_id)
        _write(folder / "reference.py", problem.source)
        if problem.given:
            _write(folder / "given.py", problem.given)
        mode = _module_mode(run)
        _write(folder / "verify.py", verify_script(problem, module_mode=mode))
        _write(folder / HOW_TO_FILE, how_to(problem, run=run.path, module_mode=mode))
        _remove_ranks_above(folder, len(paths))
        written[problem_id] = paths
    return written


def rank_candidates(state: RunState) -> dict[str, list[Ranked]]:
    """Return each problem's correct candidates, each once, by falling speed-up.

    Equal speed-ups stay in the order of the journal's searches and expansions.
    """
    found: dict[str, dict[str, Ranked]] = {}
    for name, search in state.searches.items():
        for expansion in search.expansions.values():
            for index, evaluation in sorted(expansion.verdicts.items()):
                if evaluation["kind"] == "correct":
                    entry = Ranked(
                        search=name, made=expansion.candidates[index], evaluation=evaluation
                    )
                    candidates = found.setdefault(search.started.problem, {})
                    candidates.setdefault(entry.made.candidate, entry)
    return {
        problem_id: sorted(candidates.values(), key=lambda e: rank(e.evaluation), reverse=True)
        for problem_id, candidates in found.items()
    }


def best_folders(run: RunDir, state: RunState) -> dict[str, Path]:
    """Return each problem's folder in `best/`, by problem id, whether it is there or not.

    It has the problem's name; of two problems of one name, the later has its id added.
    """
    folders: dict[str, Path] = {}
    for search in state.searches.values():
        problem_id, name = search.started.problem, search.started.problem_name
        if problem_id in folders:
            continue
        file_name = Problem(name=name, source="").file_name
        if not file_name.strip("."):
            file_name = problem_id[:12]
        if run.best_folder / file_name in folders.values():
            file_name = f"{file_name}-{problem_id[:12]}"
        folders[problem_id] = run.best_folder / file_name
    return folders


def verify_script(problem: Problem, *, module_mode: str) -> str:
    """Return the text of a problem's `verify.py`."""
    settings = {
        "problem": problem.name,
        "dtype": problem.dtype,
        "module_mode": module_mode,
        "ladders": {name: asdict(ladder) for name, ladder in LADDERS.items()},
    }
    template = files("kopt.data").joinpath(TEMPLATE).read_text(encoding="utf-8")
    return template.replace(_SETTINGS_MARK, repr(settings), 1)


def _write_rank(run: RunDir, folder: Path, number: int, entry: Ranked) -> Path:
    path = folder / f"rank{number}.py"
    _write(path, run.artefacts.get(entry.made.source))
    origin = {
        "strategy": entry.made.strategy,
        "programmer": entry.made.programmer,
        "parent": entry.made.parent,
        "search": entry.search,
    }
    record = {**entry.evaluation, **origin}
    _write(path.with_suffix(".json"), json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    return path


def _write(path: Path, text: str) -> None:
    content = text.encode("utf-8", errors="replace")
    if not path.is_file() or path.read_bytes() != content:
        write_bytes(path, content)


def _remove_ranks_above(folder: Path, last: int) -> None:
    try:
        for path in folder.iterdir():
            match = _RANK_FILE.fullmatch(path.name)
            if match and int(match[1]) > last:
                path.unlink()
    except OSError as error:
        raise store_error(folder, error) from error


def _module_mode(run: RunDir) -> str:
    """Return how modules ran, from the resolved config; KernelBench's way where it is not said."""
    if not run.manifest_path.is_file():
        return _DEFAULT_MODE
    config = run.read_manifest().get("config") or {}
    return str((config.get("evaluate") or {}).get("module_mode", _DEFAULT_MODE))
