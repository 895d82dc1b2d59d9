"""The run folder: where each thing of a run lies, and how it is made and found again.

runs/<name>/
  manifest.json        resolved config, versions, hardware, commitment to the secret seed
  problems/<id>.json   the problems as they were searched: the folder needs nothing outside it
  seeds.json           candidates that its searches began with, where there are any
  journal/             what happened (kopt.data.journal)
  artefacts/           long texts by sha256
  results.parquet      a row per search
  best/<problem>/      the fastest correct candidates
  mailbox/             prompts and answers as files, where a person or an agent writes
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from kopt.data.artefacts import Artefacts
from kopt.data.atomic import make_folder, store_error, write_bytes
from kopt.data.journal_files import JOURNAL_FOLDER, read_events
from kopt.data.lock import lock_owner
from kopt.errors import ConfigError, StoreError
from kopt.events import RunEnded
from kopt.ports import Clock
from kopt.problem import Problem

RunStatus = Literal["running", "ended", "failed", "interrupted"]
MAX_SAME_SECOND = 1_000
"""Run folders that may be named after one second."""


class RunDir:
    """The paths of one run folder."""

    def __init__(self, path: Path | str) -> None:
        """Name a run folder; `create` makes one, `open` checks that it is one."""
        self.path = Path(path)
        self.manifest_path = self.path / "manifest.json"
        self.results_path = self.path / "results.parquet"
        self.best_folder = self.path / "best"
        self.problems_folder = self.path / "problems"
        self.artefacts = Artefacts(self.path / "artefacts")

    @property
    def name(self) -> str:
        """Name of the run: its folder's."""
        return self.path.resolve().name

    @classmethod
    def create(cls, root: Path | str, name: str | None = None, *, clock: Clock) -> RunDir:
        """Make the folder of a new run below root.

        Args:
            root: made if it is not there.
            name: of the run; None takes the time in UTC, such as `2026-03-01_14-05-33`.
            clock: for that time.

        Raises:
            ConfigError: a run of that name is there, or the name is no folder's name.
            StoreError: the folder cannot be made.
        """
        if name is not None:
            if name in ("", ".", "..") or Path(name).name != name:
                raise ConfigError(f"name={name}: expected a plain folder name")
            run = cls(Path(root) / name)
            if not run._make():
                raise ConfigError(
                    f"name={name}: {run.path} exists; choose another name, or go on with "
                    f"`kopt resume {run.path}`"
                )
            return run
        now = datetime.fromtimestamp(clock.now_ns() / 1e9, tz=UTC)
        stamp = f"{now:%Y-%m-%d_%H-%M-%S}"
        for attempt in range(1, MAX_SAME_SECOND + 1):
            run = cls(Path(root) / (stamp if attempt == 1 else f"{stamp}-{attempt}"))
            if run._make():
                return run
        raise StoreError(str(root), f"{MAX_SAME_SECOND} runs are named {stamp}; pass name=")

    @classmethod
    def open(cls, path: Path | str) -> RunDir:
        """Return the folder of an existing run.

        Raises:
            ConfigError: it is not a run folder.
        """
        run = cls(path)
        if not run.manifest_path.is_file() and not (run.path / JOURNAL_FOLDER).is_dir():
            raise ConfigError(f"{path}: expected a run folder, found no manifest.json in it")
        return run

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write or replace the manifest, whole.

        Raises:
            StoreError: it cannot be written.
        """
        _write_json(self.manifest_path, dict(manifest))

    def read_manifest(self) -> dict[str, Any]:
        """Return the manifest.

        Raises:
            StoreError: there is none, or it is damaged.
        """
        return _read_json(self.manifest_path)

    def identity(self) -> str:
        """Return what tells this run from any other, wherever its folder lies and is called.

        Its name where it has no manifest.

        Raises:
            StoreError: the manifest is damaged.
        """
        if not self.manifest_path.is_file():
            return self.name
        manifest = self.read_manifest()
        return f"{manifest.get('name', self.name)} of {manifest.get('created')}"

    def keep_serving(self, figures: Mapping[str, Any]) -> None:
        """Add what a programmer's servers did in one sitting to the manifest's list `serving`.

        Raises:
            StoreError: the manifest cannot be read or written.
        """
        serving = [*self.serving(), dict(figures)]
        self.write_manifest({**self.read_manifest(), "serving": serving})

    def serving(self) -> list[dict[str, Any]]:
        """Return what a programmer's servers did, sitting by sitting; empty where there were none.

        Raises:
            StoreError: the manifest is damaged.
        """
        if not self.manifest_path.is_file():
            return []
        return list(self.read_manifest().get("serving", []))

    def keep_problem(self, problem: Problem) -> None:
        """Write a problem down, so that best/, resume and verify need its source nowhere else.

        One that is there just so is left alone: a resumed run has thousands of them, each of which
        would be forced to disk again.

        Raises:
            StoreError: it cannot be written.
        """
        path = self._problem_path(problem.problem_id)
        if path.is_file() and _read_json(path) == asdict(problem):
            return
        make_folder(self.problems_folder)
        _write_json(path, asdict(problem))

    def problem(self, problem_id: str) -> Problem:
        """Return a problem that was kept.

        Raises:
            StoreError: there is none of that id, or it is damaged.
        """
        path = self._problem_path(problem_id)
        fields = _read_json(path)
        try:
            problem = Problem(**fields)
        except TypeError as error:
            raise StoreError(str(path), f"not a problem: {error}") from error
        if problem.problem_id != problem_id:
            raise StoreError(str(path), f"damaged: it holds problem {problem.problem_id}")
        return problem

    def status(self) -> RunStatus:
        """Return what became of the run; reads its whole journal unless a driver has it.

        Raises:
            StoreError: the journal is damaged.
        """
        if lock_owner(self.path) is not None:
            return "running"
        if not (self.path / JOURNAL_FOLDER).is_dir():
            return "interrupted"
        newest = deque(read_events(self.path), maxlen=1)
        ended = newest[0].body if newest else None
        if not isinstance(ended, RunEnded):
            return "interrupted"
        return "failed" if ended.failed else "ended"

    def _problem_path(self, problem_id: str) -> Path:
        return self.problems_folder / f"{problem_id}.json"

    def _make(self) -> bool:
        """Make the folder; False where it is there already."""
        make_folder(self.path.parent)
        try:
            self.path.mkdir()
        except FileExistsError:
            return False
        except OSError as error:
            raise store_error(self.path, error) from error
        return True


def _write_json(path: Path, value: dict[str, Any]) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    write_bytes(path, text.encode("utf-8", errors="replace"))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise store_error(path, error) from error
    except ValueError as error:
        raise StoreError(str(path), f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise StoreError(str(path), f"expected an object, found {type(value).__name__}")
    return value
