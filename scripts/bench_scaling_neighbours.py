"""The noise of GPUs in bench_scaling.py: a racer on each, beside fleets on all others and alone.

The racers start together and idle while it is not their turn. What is beside comes first: the
racers get ready while its first fleet does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench_scaling_fleet import Fleet, Look, Order
from bench_scaling_journal import Window, load_within, read_story
from bench_scaling_noise import Racer

MANY_CANDIDATES = 400
"""Of a problem: the fleet outlasts the races, and is stopped when they are over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What of each GPU and state."""

    races: int
    races_s: float
    """That a state of a GPU may take."""
    until_s: float
    """When all is to be over, on the monotonic clock."""

    @property
    def seconds(self) -> float:
        """What a state that begins now may take; below 1 there is no use in beginning."""
        return min(self.races_s, self.until_s - time.monotonic())


def noise_of(
    racers: Mapping[int, Racer], *, loads: Mapping[int, Order], folder: Path, wanted: Wanted
) -> list[dict[str, Any]]:
    """Race equal kernels on GPUs, each with the others busy and alone; return a row for each.

    Args:
        racers: by the place of their GPU, just started; they are ended at the end.
        loads: what the other GPUs do meanwhile, by the same places; none where there are no others.
        folder: for the run folders of the loads.
        wanted: races and time.
    """
    with ExitStack() as stack:
        for racer in racers.values():
            stack.enter_context(racer)
        rows: dict[int, dict[str, Any]] = {
            place: {"gpu": place, "alone": None, "beside": None} for place in racers
        }
        for place, load in loads.items():
            if wanted.seconds >= 1.0:
                rows[place] |= _beside(racers[place], load=load, folder=folder, wanted=wanted)
        for place, racer in racers.items():
            rows[place].setdefault("chain", racer.ready() if place not in loads else None)
            if wanted.seconds >= 1.0:
                found = racer.race("alone", races=wanted.races, seconds=wanted.seconds)
                rows[place]["alone"] = found
    return list(rows.values())


def _beside(racer: Racer, *, load: Order, folder: Path, wanted: Wanted) -> dict[str, Any]:
    """Race beside a fleet that is at work when the first race begins."""
    order = replace(load, search="mcts", candidates=MANY_CANDIDATES)
    with Fleet(order, folder) as fleet, ThreadPoolExecutor(1) as other:
        found: dict[str, Any] = {"chain": racer.ready()}
        fleet.watch(until_s=wanted.until_s, on_look=is_at_work)
        if fleet.is_over or wanted.seconds < 1.0:
            return found | {"fault": f"the fleet beside had no time to work: {fleet.stop().words}"}
        began_ns = time.time_ns()
        racing = other.submit(racer.race, "beside", races=wanted.races, seconds=wanted.seconds)
        watched = fleet.watch(
            until_s=wanted.until_s + wanted.races_s, on_look=lambda look: racing.done()
        )
        found["beside"] = racing.result()
        ended_ns = time.time_ns()
    judged = [at for at in read_story(watched.run).judged_ns if began_ns <= at <= ended_ns]
    window = Window(from_ns=began_ns, to_ns=ended_ns, judged=len(judged))
    found["load"] = {
        "gpus": len(order.gpus),
        "judged": len(judged),
        "per_gpu_hour": window.per_gpu_hour(len(order.gpus)),
        **(load_within(watched.looks, window) if judged else {}),
    }
    return found


def is_at_work(look: Look) -> bool:
    """Return whether candidates are in at least half of the devices' places."""
    lane = look.lane("timing")
    return lane is not None and 2 * lane.num_calls >= lane.num_places
