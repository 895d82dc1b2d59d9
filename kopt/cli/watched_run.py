"""A run that is watched: its folder, read again and again for what is new. Never writes to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kopt.cli.watch_state import Watched
from kopt.cli.watch_tree import WatchedTree
from kopt.cli.watch_view import Moment
from kopt.config import load
from kopt.data.journal_tail import JournalTail
from kopt.data.lanes_file import read_lanes
from kopt.data.lock import lock_owner
from kopt.data.manifest import SCHEMA_VERSION
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError

FRESH_S = 5.0
"""A driver writes its lanes once a second: what is as new has one, whatever its lock says."""
MAX_NAMED = 8
"""Searches that an error text lists."""


class WatchedRun:
    """Reads a run folder, look by look."""

    def __init__(
        self,
        path: str,
        *,
        search: str | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Open a run folder; nothing of its journal is read yet.

        Args:
            path: of the folder.
            search: whose tree is kept; None keeps none.
            now_ns: clock, in nanoseconds since the epoch.

        Raises:
            ConfigError: it is not a run folder, or another version of kopt wrote it.
            StoreError: its manifest is damaged.
        """
        self.run = RunDir.open(path)
        self._now_ns = now_ns
        self._manifest = self._read_manifest()
        self._tail = JournalTail(self.run.path)
        self._owner: str | None = None
        self.tree = None if search is None else WatchedTree(search)
        self.watched = Watched(searches=self._num_searches(), budget=self._budget())
        self.moment = self._look_beside()

    @property
    def is_driven(self) -> bool:
        """Whether somebody drives it."""
        return self.moment.owner is not None

    def look(self) -> bool:
        """Read what is new; True where anything that is shown may have changed.

        Raises:
            StoreError: the journal is damaged, or of another version.
        """
        before = self._tail.next_seq, self.moment.status, self.moment.lanes
        for record in self._tail.read():
            self.watched.observe(record)
            if self.tree is not None:
                self.tree.observe(record)
        self.moment = self._look_beside()
        return before != (self._tail.next_seq, self.moment.status, self.moment.lanes)

    def follow(self, search: str) -> None:
        """Keep the tree of one search from now on; the journal is read from its begin for it.

        Raises:
            StoreError: as `look`.
        """
        self.tree = WatchedTree(search)
        self._tail = JournalTail(self.run.path)
        self.watched = Watched(searches=self._num_searches(), budget=self._budget())
        self.look()

    def check_search(self) -> None:
        """Find that the search whose tree is kept is one of the run's.

        Raises:
            ConfigError: it is not; the text names those that there are.
        """
        known = self.watched.standing.searches
        if self.tree is None or self.tree.search in known:
            return
        names = ", ".join(list(known)[:MAX_NAMED]) or "none yet"
        more = f" and {len(known) - MAX_NAMED} more" if len(known) > MAX_NAMED else ""
        raise ConfigError(
            f"--search {self.tree.search}: {self.run.path} has no such search; "
            f"there are: {names}{more}"
        )

    def _look_beside(self) -> Moment:
        now_ns = self._now_ns()
        lanes = read_lanes(self.run.path)
        is_fresh = lanes is not None and abs(now_ns - lanes.time_ns) < FRESH_S * 1e9
        if not is_fresh or self._owner is None:
            self._owner = lock_owner(self.run.path)
        if not self._manifest.get("device"):
            self._manifest = self._read_manifest()  # it comes once the cluster is up
        is_driven = self._owner is not None
        device: dict[str, Any] = self._manifest.get("device") or {}
        return Moment(
            name=self.run.name,
            status=self._status(),
            owner=self._owner,
            device=str(device.get("name") or ""),
            num_devices=max(1, int(device.get("count") or 1)),
            lanes=lanes if is_driven else None,
            now_ns=now_ns if is_driven else self.watched.last_ns,
        )

    def _status(self) -> str:
        ended = self.watched.ended
        if self._owner is not None:
            return "running"
        if ended is None:
            return "interrupted"
        return "failed" if ended.failed else "ended"

    def _read_manifest(self) -> dict[str, Any]:
        if not self.run.manifest_path.is_file():
            return {}  # its driver has only begun
        manifest = self.run.read_manifest()
        schema = manifest.get("schema")
        if schema != SCHEMA_VERSION:
            raise ConfigError(
                f"{self.run.path}: expected a run of schema {SCHEMA_VERSION}, found {schema!r}; "
                "watch it with the kopt that wrote it"
            )
        return manifest

    def _num_searches(self) -> int:
        config: dict[str, Any] = self._manifest.get("config") or {}
        problems = len(list(self.run.problems_folder.glob("*.json")))
        return problems * len(config.get("seed") or [0])

    def _budget(self) -> int:
        """Candidates of one search, at most; 0 where its config is of another version."""
        try:
            return load(self._manifest["config"]).search.budget
        except (KeyError, ConfigError):
            return 0
