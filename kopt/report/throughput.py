"""Throughput of a run: candidates judged over time, and where their seconds went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kopt.data.results import ResultRow, result_rows
from kopt.report.reading import Judged, ReportedRun

PAUSE_S = 900.0
"""A longer gap between verdicts is a run that stood still: it is left out of the time."""
MAX_POINTS = 400
"""Points of the curve."""
WAITS = ("queued", "build_queued", "verify_queued", "timing_queued")
"""Stages of a candidate's timeline in which it waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """One run."""

    label: str
    run: int
    """Candidates that were run."""
    cached: int
    """Those whose verdict was known before."""
    devices: int
    active_s: float
    """From the first event to the last verdict, without pauses."""
    per_device_hour: float | None
    """Candidates that were run to an hour of each device; None without time."""
    curve: tuple[tuple[float, int], ...]
    """Hours of active time and candidates judged by then, known ones included."""
    stages_s: Mapping[str, float]
    """Stage to the seconds in it, over all candidates that were run; the longest first."""
    profiled: int
    """Candidates with evidence."""
    profiled_s: float
    wall_s: float
    """Sum over searches, which overlap."""
    device_s: float
    tokens_in: int
    tokens_out: int
    cost_usd: float


def throughput(run: ReportedRun) -> Throughput:
    """Return the figures of a run."""
    rows = result_rows(run.state)
    begun = min((each.first_ns for each in run.state.searches.values()), default=0)
    times, active_s = _active(run.judged, begun_ns=begun)
    device = run.manifest.get("device") or {}
    devices = max(1, int(device.get("count") or 1))
    live = sum(not each.cached for each in run.judged)
    profiles = [
        profile for search in run.state.searches.values() for profile in search.profiles.values()
    ]
    return Throughput(
        label=run.label,
        run=live,
        cached=len(run.judged) - live,
        devices=devices,
        active_s=active_s,
        per_device_hour=live * 3600.0 / (active_s * devices) if active_s > 0.0 else None,
        curve=_thinned(times),
        stages_s=_stages(run),
        profiled=sum(profile.evidence.ref is not None for profile in profiles),
        profiled_s=sum(profile.evidence.profiled_s for profile in profiles),
        wall_s=_total(rows, "wall_s"),
        device_s=_total(rows, "gpu_s"),
        tokens_in=sum(row["tokens_in"] for row in rows),
        tokens_out=sum(row["tokens_out"] for row in rows),
        cost_usd=_total(rows, "cost_usd"),
    )


def _total(rows: Sequence[ResultRow], column: str) -> float:
    values: Sequence[Mapping[str, object]] = rows
    return float(sum(value for row in values if isinstance(value := row[column], int | float)))


def _active(judged: Sequence[Judged], *, begun_ns: int) -> tuple[list[float], float]:
    """Return the seconds of active time at which each verdict came, and their end."""
    times, active_s, last_ns = [], 0.0, begun_ns
    for each in judged:
        step_s = max(0.0, (each.time_ns - last_ns) / 1e9)
        active_s += step_s if step_s <= PAUSE_S else 0.0
        last_ns = max(last_ns, each.time_ns)
        times.append(active_s)
    return times, active_s


def _thinned(times: Sequence[float]) -> tuple[tuple[float, int], ...]:
    step = max(1, len(times) // MAX_POINTS)
    counts = [*range(step, len(times), step), len(times)] if times else []
    return ((0.0, 0), *((times[count - 1] / 3600.0, count) for count in counts))


def _stages(run: ReportedRun) -> dict[str, float]:
    total: Counter[str] = Counter()
    for search in run.state.searches.values():
        for expansion in search.expansions.values():
            for index, record in expansion.verdicts.items():
                if index not in expansion.cached:
                    total.update(record["timeline_s"])
    return {stage: seconds for stage, seconds in total.most_common() if seconds > 0.0}
