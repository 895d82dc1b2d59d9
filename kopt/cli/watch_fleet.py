"""A multirun that is watched: its jobs, each as a run of its own, and all of them in one frame."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from kopt.cli.progress import duration
from kopt.cli.watch_json import snapshot
from kopt.cli.watch_state import Spending
from kopt.cli.watch_view import MAX_FAILURES, cost_line, lanes_table, name_cell, table_of
from kopt.cli.watched_run import WatchedRun
from kopt.data.fleet_file import FleetJob, read_fleet_file
from kopt.data.rundir import RunDir

MAX_JOBS = 20
"""Jobs shown: those that run first, then those that have not ended."""
STATES = {"running": 0, "waiting": 1, "interrupted": 2, "failed": 3, "ended": 4}


class WatchedFleet:
    """Reads the folder of a multirun, look by look. Never writes to it."""

    def __init__(self, path: str) -> None:
        """Read which jobs there are.

        Args:
            path: of the multirun's folder.

        Raises:
            StoreError: its `fleet.json` is damaged.
        """
        self._path = Path(path)
        self._jobs = read_fleet_file(self._path)
        self._shared = (
            set.intersection(*(set(job.overrides) for job in self._jobs)) if self._jobs else set()
        )
        """Overrides of every job: they tell none from the others."""
        self._runs: dict[str, WatchedRun] = {}
        """Job's folder to its run; only those that have begun."""

    def look(self) -> bool:
        """Read what is new; True where anything that is shown may have changed.

        Raises:
            ConfigError: another version of kopt wrote a job's run.
            StoreError: a journal is damaged, or of another version.
        """
        is_new = False
        for job in self._jobs:
            folder = self._path / job.folder
            if job.folder not in self._runs:
                if not RunDir(folder).manifest_path.is_file():
                    continue  # its turn has not come
                self._runs[job.folder] = WatchedRun(str(folder))
                is_new = True
            is_new |= self._runs[job.folder].look()
        return is_new

    @property
    def is_driven(self) -> bool:
        """Whether somebody drives one of the jobs."""
        return any(run.is_driven for run in self._runs.values())

    def frame(self) -> RenderableType:
        """Return what the terminal shows of the multirun."""
        parts: list[RenderableType] = [
            Text(line, overflow="ellipsis", no_wrap=True) for line in self._heading()
        ]
        lanes = next((run.moment.lanes for run in self._runs.values() if run.moment.lanes), None)
        if lanes is not None:
            parts += [Text(), lanes_table(lanes)]
        parts += [Text(), *self._jobs_table()]
        if any(run.watched.failures for run in self._runs.values()):
            parts += [Text(), self._failures()]
        return Group(*parts)

    def snapshot(self) -> dict[str, Any]:
        """Return the same as plain JSON values; `jobs` has a run's snapshot for each that began."""
        return {
            "multirun": self._path.name,
            "jobs": [
                {
                    "job": job.folder,
                    "arm": job.arm,
                    "overrides": list(job.overrides),
                    "state": self._state(job),
                    "run": None if run is None else snapshot(run.watched, run.moment),
                }
                for job in self._jobs
                for run in (self._runs.get(job.folder),)
            ],
        }

    def _heading(self) -> list[str]:
        watched = [run.watched for run in self._runs.values()]
        states = Counter(map(self._state, self._jobs))
        said = ", ".join(f"{states[state]} {state}" for state in STATES if states[state])
        device = next((r.moment for r in self._runs.values() if r.moment.device), None)
        where = f"; {device.num_devices} x {device.device}" if device is not None else ""
        searches = sum(each.standing.num_searches for each in watched)
        spent = [each.spending for each in watched]
        return [
            f"{self._path.name}: {len(self._jobs)} jobs, {said}{where}",
            f"{sum(each.standing.ended for each in watched)} of {searches} searches ended; "
            f"{sum(each.standing.told for each in watched):,} candidates told, "
            f"{sum(each.kinds['correct'] for each in watched):,} correct",
            f"{sum(each.live for each in watched):,} run, "
            f"{sum(each.cached for each in watched):,} known before; {self._pace()}",
            cost_line(
                Spending(
                    tokens_in=sum(each.tokens_in for each in spent),
                    tokens_out=sum(each.tokens_out for each in spent),
                    cost_usd=sum(each.cost_usd for each in spent),
                )
            ),
        ]

    def _pace(self) -> str:
        """Of all jobs together: they share the devices, so their times are one."""
        live = sum(run.watched.live for run in self._runs.values())
        active_s = max(
            (run.watched.active_s(now_ns=run.moment.now_ns) for run in self._runs.values()),
            default=0.0,
        )
        if not live or active_s <= 0.0:
            return "pace not known yet"
        devices = max(run.moment.num_devices for run in self._runs.values())
        per_hour = 3600.0 * live / (active_s * devices)
        return f"{per_hour:,.0f} run an hour on a device, over {duration(active_s)}"

    def _state(self, job: FleetJob) -> str:
        run = self._runs.get(job.folder)
        return "waiting" if run is None else run.moment.status

    def _jobs_table(self) -> list[RenderableType]:
        table = table_of(
            "arm", numbers=("job", "ended", "told", "correct", "mean best"), words=("state",)
        )
        rows = sorted(self._jobs, key=lambda job: STATES.get(self._state(job), 0))
        for job in rows[:MAX_JOBS]:
            run = self._runs.get(job.folder)
            own = [text for text in job.overrides if text not in self._shared]
            words = " ".join([job.arm, *own])
            if run is None:
                table.add_row(name_cell(words), job.folder, "", "", "", "", "waiting")
                continue
            standing = run.watched.standing
            table.add_row(
                name_cell(words),
                job.folder,
                f"{standing.ended}/{standing.num_searches}",
                f"{standing.told:,}",
                f"{run.watched.kinds['correct']:,}",
                _mean_best(run),
                run.moment.status,
            )
        hidden = len(rows) - MAX_JOBS
        return [table, *([Text(f"… and {hidden} more jobs")] if hidden > 0 else [])]

    def _failures(self) -> RenderableType:
        counts: Counter[str] = Counter()
        recent: Counter[str] = Counter()
        newest: dict[str, str] = {}
        for folder, run in self._runs.items():
            recent.update(run.watched.recent_failures(now_ns=run.moment.now_ns))
            for kind, failure in run.watched.failures.items():
                counts[kind] += failure.count
                newest[kind] = f"job {folder}: {failure.newest}"
        table = table_of(
            "failure", numbers=("all", "recent"), words=("one of them",), giving_way="one of them"
        )
        for kind, count in counts.most_common(MAX_FAILURES):
            table.add_row(kind, str(count), str(recent[kind]), name_cell(newest[kind]))
        return table


def _mean_best(run: WatchedRun) -> str:
    """The geometric mean of the searches' bests, of those that have one."""
    best = [each["speedup"] or 1.0 for each in run.watched.best.values()]
    return f"{math.exp(sum(map(math.log, best)) / len(best)):.2f}x" if best else "-"
