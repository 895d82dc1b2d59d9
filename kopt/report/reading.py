"""A run as the report reads it: its journal folded once, with the moments of its verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kopt.data.artefacts import Artefacts
from kopt.data.fold import RunState, apply
from kopt.data.journal_files import read_events
from kopt.data.rundir import RunDir
from kopt.events import VerdictReached


@dataclass(frozen=True, slots=True)
class Judged:
    """When one candidate had its verdict."""

    time_ns: int
    """Since the epoch."""
    cached: bool
    """It was known before; nothing was run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """One run."""

    label: str
    """Its name, or its path where several are named so."""
    path: str
    status: str
    """`running`, `ended`, `failed`, `interrupted`."""
    manifest: Mapping[str, Any]
    """Empty where its driver has only begun."""
    state: RunState
    judged: tuple[Judged, ...]
    """In the journal's order."""
    artefacts: Artefacts


def read_run(run: RunDir, *, label: str, status: str) -> ReportedRun:
    """Return a run with everything that its journal holds.

    Args:
        run: its folder.
        label: what to call it.
        status: what became of it.

    Raises:
        StoreError: the journal or the manifest is damaged.
    """
    state, judged = RunState(), []
    for record in read_events(run.path):
        apply(state, record)
        if isinstance(record.body, VerdictReached):
            judged.append(Judged(record.time_ns, record.body.cached))
    return ReportedRun(
        label=label,
        path=str(run.path),
        status=status,
        manifest=run.read_manifest() if run.manifest_path.is_file() else {},
        state=state,
        judged=tuple(judged),
        artefacts=run.artefacts,
    )
