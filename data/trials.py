"""Trials of a run folder: its journal, read once from the first event to the last.

Reads what a driver wrote, may still be writing, or left when it was killed; never writes.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from kopt.analysis.trial import Terms, Trial
from kopt.data.evidence_json import evidence_from_json
from kopt.data.journal_files import read_events
from kopt.data.lock import lock_owner
from kopt.data.manifest import SCHEMA_VERSION
from kopt.data.record import Record
from kopt.data.rundir import RunDir, RunStatus
from kopt.data.search_digest import Profiled, SearchDigest, SpeedupOver
from kopt.errors import ConfigError, StoreError
from kopt.events import AgentCalled, DeviceQuarantined, RunEnded, SearchStarted
from kopt.problem import Problem

ARM_SECTIONS = (
    "search",
    "programmer",
    "pipeline",
    "reward",
    "findings",
    "tools",
    "profile_analysis",
    "energy",
    "memory",
    "limits",
    "stop",
)
"""Sections of the configuration that make an arm; the rest is what it searches, and on what."""
KEPT_PROFILES = 10_000
"""Profiles whose figures are kept while a run is read: searches of a run share them."""
UNKNOWN = "unknown"


@dataclass(slots=True, kw_only=True)
class RunTrials:
    """What a run folder gives to statistics."""

    label: str
    status: RunStatus
    trials: list[Trial]
    """Of every search that was started, in that order, ended or not."""
    settings: dict[str, object]
    """Dotted key to value, of ARM_SECTIONS; empty where the run has no manifest."""
    events: int
    remarks: list[str] = field(default_factory=list)
    """A line for each thing that is not as in a whole run."""


def read_trials(run: RunDir, *, label: str, over: SpeedupOver = "recorded") -> RunTrials:
    """Return the trials of a run.

    Args:
        run: its folder.
        label: what to call it.
        over: which speed-up counts.

    Raises:
        ConfigError: another version of kopt wrote it.
        StoreError: the journal or the manifest is damaged, or of another version.
    """
    manifest = _manifest(run)
    config: dict[str, Any] = manifest.get("config") or {}
    is_reactive = _at(config, "findings", "orchestration") == "reactive"
    owner = lock_owner(run.path)
    searches: dict[str, SearchDigest] = {}
    events, end = 0, None
    for record in read_events(run.path):
        events += 1
        body = record.body
        end = body if isinstance(body, RunEnded) else None
        if isinstance(body, RunEnded | DeviceQuarantined):
            continue
        if isinstance(body, AgentCalled) and not record.search:
            continue  # of a compiled model as a whole: no trial's
        if isinstance(body, SearchStarted):
            if record.search in searches:
                raise _contradiction(run, record, f"search {record.search!r} was started before")
            searches[record.search] = SearchDigest(
                started=body,
                over=over,
                is_reactive=is_reactive,
                first_ns=record.time_ns,
                last_ns=record.time_ns,
            )
            continue
        digest = searches.get(record.search)
        why = f"search {record.search!r} was not started"
        if digest is not None:
            why = digest.observe(body, time_ns=record.time_ns) or ""
        if why:
            raise _contradiction(run, record, why)
    found = RunTrials(
        label=label,
        status=_status(owner, end),
        trials=[],
        settings=_flat({name: config[name] for name in ARM_SECTIONS if name in config}),
        events=events,
    )
    _fill(found, run, searches, manifest=manifest, over=over)
    return found


def _fill(
    found: RunTrials,
    run: RunDir,
    searches: dict[str, SearchDigest],
    *,
    manifest: Mapping[str, Any],
    over: SpeedupOver,
) -> None:
    unreadable: Counter[str] = Counter()
    profiled = _profiles(run, unreadable)
    problems = _problems(run, {digest.started.problem for digest in searches.values()})
    untimed = moved = 0
    while searches:  # each is let go once it is counted
        name = next(iter(searches))
        digest = searches.pop(name)
        problem = problems.get(digest.started.problem)
        if problem is not None and problem.degenerate:
            digest.degenerate = True
        if digest.untimed and digest.best is None:
            untimed += 1
            continue
        moved += len(digest.terms) > 1
        terms = _terms(digest, manifest=manifest, over=over)
        family = "" if problem is None else problem.family
        found.trials.append(
            digest.trial(name, run=found.label, family=family, terms=terms, profiled=profiled)
        )
    if untimed:
        found.remarks.append(
            f"{untimed} search(es) have correct candidates without a speed-up over "
            f"{'their baseline' if over == 'recorded' else over}: left out"
        )
    if moved:
        found.remarks.append(
            f"{moved} search(es) have verdicts of several devices or ladders: each counts by "
            "that of its best candidate"
        )
    if unreadable:
        found.remarks.append(
            f"{unreadable.total()} profile(s) cannot be read: their class and energy are unknown"
        )


def _contradiction(run: RunDir, record: Record, why: str) -> StoreError:
    return StoreError(f"journal of {run.path}", f"seq {record.seq}: {record.body.kind}: {why}")


def _manifest(run: RunDir) -> dict[str, Any]:
    if not run.manifest_path.is_file():
        return {}
    manifest = run.read_manifest()
    if manifest.get("schema") != SCHEMA_VERSION:
        raise ConfigError(
            f"{run.path}: expected a run of schema {SCHEMA_VERSION}, found "
            f"{manifest.get('schema')!r}; read it with the kopt that wrote it"
        )
    return manifest


def _status(owner: str | None, end: RunEnded | None) -> RunStatus:
    if owner is not None:
        return "running"
    if end is None:
        return "interrupted"
    return "failed" if end.failed else "ended"


def _terms(digest: SearchDigest, *, manifest: Mapping[str, Any], over: SpeedupOver) -> Terms:
    config: Mapping[str, Any] = manifest.get("config") or {}
    record = digest.any_verdict
    device = _device(None if record is None else record["device"], manifest=manifest)
    ladder = _at(config, "evaluate", "ladder") if record is None else record["ladder"]
    track = _at(config, "evaluate", "track") if record is None else record["track"]
    protocol = None if record is None else record.get("protocol")
    return Terms(
        ladder=str(ladder or UNKNOWN),
        device=device,
        baseline=over if over != "recorded" else _baseline(config),
        protocol=str(protocol or _at(config, "evaluate", "timing", "protocol") or "abba"),
        module_mode=str(_at(config, "evaluate", "module_mode") or UNKNOWN),
        track=str(track or UNKNOWN),
    )


def _device(name: str | None, *, manifest: Mapping[str, Any]) -> str:
    """A verdict calls every processor `cpu`; the manifest knows which."""
    known: Mapping[str, Any] = manifest.get("device") or {}
    model = str(known.get("name") or UNKNOWN)
    if name is None:
        name = "cpu" if known.get("kind") == "cpu" else model
    return f"cpu ({model})" if name == "cpu" else name


def _baseline(config: Mapping[str, Any]) -> str:
    named = _at(config, "evaluate", "baseline")
    if named != "best":
        return str(named or UNKNOWN)
    is_compiled = _at(config, "evaluate", "compile")
    return "the faster of eager and compile" if is_compiled else "eager"


def _problems(run: RunDir, ids: set[str]) -> dict[str, Problem]:
    """The problems that the run kept; of one that it did not, the labels are unknown."""
    found = {}
    for problem_id in ids:
        with contextlib.suppress(StoreError):
            found[problem_id] = run.problem(problem_id)
    return found


def _profiles(run: RunDir, unreadable: Counter[str]) -> Callable[[str], Profiled | None]:
    @lru_cache(maxsize=KEPT_PROFILES)
    def profiled(ref: str) -> Profiled | None:
        try:
            evidence = evidence_from_json(json.loads(run.artefacts.get(ref)))
        except (StoreError, ConfigError, ValueError):
            unreadable[ref] = 1
            return None
        energy = evidence.energy
        return Profiled(
            bottleneck=None if evidence.roofline is None else evidence.roofline.bottleneck,
            millijoules=None if energy is None else energy.millijoules,
            proxy_pj=None if energy is None else energy.corrected_pj,
        )

    return profiled


def _at(config: Mapping[str, Any], *path: str) -> Any:  # noqa: ANN401 - values of plain JSON
    value: Any = config
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _flat(value: Mapping[str, Any], *, prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, Mapping):
            found.update(_flat(item, prefix=f"{name}."))
        else:
            found[name] = item
    return found
