"""What a fleet of bench_scaling.py came to, by its journal and by the looks at it.

A run has an onset (nothing is judged before the first problem is read and ready) and a tail (once
fewer candidates are left than the devices have places, some stand idle). `steady` is between the
two: from the verdict by which every place can have given its first (they begin together, so that
those come in a bunch) to the one after which fewer are left than there are places. `whole` is from
the first question to the last verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench_scaling_fleet import Look, Watched

from kopt.data.fold import fold
from kopt.data.journal_files import JOURNAL_FOLDER, read_events
from kopt.data.record import Record
from kopt.driver.replay import replay
from kopt.errors import StoreError
from kopt.events import (
    CandidateMade,
    ExpansionAsked,
    ExpansionCancelled,
    SearchEnded,
    Told,
    VerdictReached,
)

Slot = tuple[str, int, int]
"""Search, expansion, index."""
OFF_DEVICE = ("sent", "built")
"""Stages of a candidate that are no device's, beside those that end in `queued`."""


@dataclass(slots=True, kw_only=True)
class Story:
    """The events of a run that count here."""

    asked_ns: list[int] = field(default_factory=list)
    made: dict[Slot, str] = field(default_factory=dict)
    """Candidate of each slot that was filled."""
    verdicts: Counter[Slot] = field(default_factory=Counter)
    told: Counter[Slot] = field(default_factory=Counter)
    kinds: dict[Slot, str] = field(default_factory=dict)
    judged_ns: list[int] = field(default_factory=list)
    """When each verdict came for which a device or a builder worked, in order."""
    timelines: list[Mapping[str, float]] = field(default_factory=list)
    """Of those verdicts, in the same order."""
    cancelled: list[str] = field(default_factory=list)
    """Reasons of expansions that were not written to their end."""
    setbacks: list[str] = field(default_factory=list)
    """Those of them that were not the programmer's to say."""
    ends: Counter[str] = field(default_factory=Counter)
    """Why searches ended."""
    fault: str = ""
    """Why the journal does not replay; empty where it does."""

    @property
    def candidates(self) -> set[tuple[str, str]]:
        """Search and candidate of every slot with a verdict."""
        return {(slot[0], self.made[slot]) for slot in self.verdicts if slot in self.made}

    @property
    def lost(self) -> int:
        """Candidates that were made and that no tree was told of."""
        return len(set(self.made) - set(self.told))

    @property
    def doubled(self) -> int:
        """Verdicts and tellings beyond one for each slot."""
        counts = [*self.verdicts.values(), *self.told.values()]
        return sum(count - 1 for count in counts)


def story_of(records: Iterable[Record]) -> Story:
    """Return what happened, in the order of the journal."""
    story = Story()
    for record in records:
        match record.body:
            case ExpansionAsked():
                story.asked_ns.append(record.time_ns)
            case CandidateMade() as made:
                story.made[record.search, made.expansion, made.index] = made.candidate
            case VerdictReached() as reached:
                slot = record.search, reached.expansion, reached.index
                story.verdicts[slot] += 1
                story.kinds[slot] = str(reached.eval["kind"])
                if not reached.cached:
                    story.judged_ns.append(record.time_ns)
                    story.timelines.append(dict(reached.eval["timeline_s"]))
            case Told() as told:
                story.told[record.search, told.expansion, told.index] += 1
            case ExpansionCancelled() as cancelled:
                story.cancelled.append(cancelled.reason)
                if not cancelled.exhausted:
                    story.setbacks.append(cancelled.reason)
            case SearchEnded() as ended:
                story.ends[ended.reason.partition(":")[0]] += 1
    return story


def read_story(run: Path) -> Story:
    """Return what happened in a run, and whether its journal replays; empty where it has none."""
    if not (run / JOURNAL_FOLDER).is_dir():
        return Story(fault="no journal was begun")
    try:
        story = story_of(read_events(run))
        replay(fold(read_events(run)))
    except StoreError as error:
        return Story(fault=str(error))
    return story


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stretch of time, and the verdicts that came in it."""

    from_ns: int
    to_ns: int
    judged: int

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.to_ns - self.from_ns) / 1e9

    def per_gpu_hour(self, gpus: int) -> float:
        """Return verdicts in an hour of one GPU."""
        return 3600.0 * self.judged / (self.seconds * gpus) if self.seconds > 0 else 0.0


def steady_window(judged_ns: Sequence[int], *, places: int) -> Window | None:
    """Return the time in which there was work for every place; None where there was none.

    Args:
        judged_ns: when each verdict came, in order.
        places: candidates that the devices hold at a time.
    """
    judged = len(judged_ns) - 2 * places
    if judged < 1:
        return None
    return Window(from_ns=judged_ns[places - 1], to_ns=judged_ns[-places - 1], judged=judged)


def figures_of(watched: Watched, story: Story) -> dict[str, Any]:
    """Return the figures of a fleet, those of the steady window under `steady`."""
    gpus = len(watched.order.gpus)
    figures: dict[str, Any] = {
        **watched.to_json(),
        "judged": len(story.judged_ns),
        "verdicts": dict(Counter(story.kinds.values())),
        "asked_for": watched.order.candidates * len(watched.order.problems),
        "lost": story.lost,
        "doubled": story.doubled,
        "setbacks": story.setbacks[:8],
        "ends": dict(story.ends),
        "fault": story.fault,
        "whole": None,
        "steady": None,
    }
    if not story.judged_ns:
        return figures
    whole = Window(
        from_ns=story.asked_ns[0], to_ns=story.judged_ns[-1], judged=len(story.judged_ns)
    )
    figures["whole"] = {
        "seconds": whole.seconds,
        "per_gpu_hour": whole.per_gpu_hour(gpus),
        "start_s": (story.asked_ns[0] - watched.began_ns) / 1e9,
        "onset_s": (story.judged_ns[0] - story.asked_ns[0]) / 1e9,
        "driver_rss_mb": max((look.driver_rss_mb for look in watched.looks), default=None),
    }
    figures["stages_s"] = mean_stages(story.timelines)
    places = _places(watched, gpus=gpus)
    window = steady_window(story.judged_ns, places=places)
    if window is not None:
        figures["steady"] = {
            "places": places,
            "seconds": window.seconds,
            "judged": window.judged,
            "per_gpu_hour": window.per_gpu_hour(gpus),
            "tail_s": (story.judged_ns[-1] - window.to_ns) / 1e9,
            **load_within(watched.looks, window),
        }
    return figures


def mean_stages(timelines: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean seconds of each stage, and of all that a device had a candidate for."""
    names = dict.fromkeys(name for timeline in timelines for name in timeline)
    count = max(1, len(timelines))
    means = {name: sum(each.get(name, 0.0) for each in timelines) / count for name in names}
    on_device = [
        seconds
        for name, seconds in means.items()
        if not (name.endswith("queued") or name in OFF_DEVICE)
    ]
    return {**means, "on_device": sum(on_device)}


def load_within(looks: Sequence[Look], window: Window) -> dict[str, Any]:
    """Return how busy driver and lanes were within a window; nothing where nobody looked twice."""
    within = [look for look in looks if window.from_ns <= look.at_ns <= window.to_ns]
    if len(within) < 2:
        return {}
    first, last = within[0], within[-1]
    seconds = (last.at_ns - first.at_ns) / 1e9
    # Verdicts between the two looks, at the window's own rate.
    judged = window.judged * seconds / window.seconds
    driver_s = last.driver_cpu_s - first.driver_cpu_s
    found: dict[str, Any] = {
        "driver_cpu_ms_each": 1e3 * driver_s / judged,
        "driver_core_share": driver_s / seconds,
        "cpu_s_each": max(0.0, last.tree_cpu_s - first.tree_cpu_s) / judged,
    }
    builds = [lane for look in within if (lane := look.lane("build")) is not None]
    if builds:
        found["builds_waiting"] = sum(lane.num_waiting for lane in builds) / len(builds)
        found["builds_waiting_most"] = max(lane.num_waiting for lane in builds)
    return found | _lane_shares(within)


def _lane_shares(within: Sequence[Look]) -> dict[str, Any]:
    """Occupancy of the device lane, whole and by device, between the first and last look at it."""
    seen = [lane for look in within if (lane := look.lane("timing")) is not None]
    if len(seen) < 2 or seen[-1].began_s <= seen[0].began_s:
        return {}
    first, last = seen[0], seen[-1]
    seconds = last.began_s - first.began_s
    depth = last.num_places / max(1, len(last.worker_busy_s))
    return {
        "occupancy": (last.busy_s - first.busy_s) / (seconds * last.num_places),
        "occupancy_by_gpu": [
            (later - earlier) / (seconds * depth)
            for earlier, later in zip(first.worker_busy_s, last.worker_busy_s, strict=False)
        ],
        "timing_waiting": sum(lane.num_waiting for lane in seen) / len(seen),
    }


def _places(watched: Watched, *, gpus: int) -> int:
    """Candidates that the devices hold at a time, by what the lanes said; else one each."""
    lanes = [lane for look in watched.looks if (lane := look.lane("timing")) is not None]
    return lanes[-1].num_places if lanes else gpus
