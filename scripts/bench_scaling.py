"""Several GPUs of one host: what a fleet judges on 1, 2, 4, 8 of them, and what that disturbs.

Usage: python scripts/bench_scaling.py [device=cpu|cuda|fake] [gpus=1,2] [problem=NAME,…]
           [problems=16] [candidates=6] [parts=fleet,kill,noise] [limit_s=600] [fleet_s=120]
           [kill_s=90] [races=100] [races_s=30] [size_us=100] [pace_s=0.5] [searches=3]
           [out=FILE.json] [--json]

`fleet`  For each number of GPUs `kopt run` with the rewriter on the same problems, as many
         candidates of each, every one from the root: the work is the same, so that rates compare.
         Cold has an empty cache; warm goes through the same again with builds and baselines in
         place, and no verdicts. n of the most GPUs asked for get n shares of the host's cores: the
         one GPU is alone on the host, with no more and no fewer cores than each has beside others.
         Efficiency is the rate of a GPU among n over that of the one; `steady` leaves out the onset
         and the tail (bench_scaling_journal.py), `whole` has both.
`kill`   The largest fleet once more, warm; a device worker is killed by SIGKILL in its midst. What
         it judged is compared with what the undisturbed one did.
`noise`  Races of equal kernels on each of the first two GPUs, alone on the host and with fleets on
         all others: how often gate 4 calls one faster, and the spread of the log-ratio.

Without `problem`, the first `problems` of data/measured/scaling_problems.json (chosen by
bench_scaling_choice.py), on a CPU as many tiny ones of our own, judged with the least effort. On a
CPU the devices time one after the other, so that only the parts are shown to work: there is no
efficiency to speak of. `device=fake` has pretended GPUs instead, `gpus` in nodes of two, whose
workers take `pace_s` for a verdict, and `searches` for each: only the driver, the lanes and Ray
(bench_scaling_fake.py).
Each fleet may take `fleet_s`, each state of a GPU's noise `races_s`; what `limit_s` leaves undone
is missing. `out` is written after each part. The last line with --json is one object.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_scaling_fake import fake_fleet, report_fake
from bench_scaling_fleet import Fleet, Order, shares_of
from bench_scaling_host import Activity, activity_of, gpus_of
from bench_scaling_journal import Story, figures_of, read_story, steady_window
from bench_scaling_kill import run_and_kill
from bench_scaling_neighbours import Wanted, noise_of
from bench_scaling_noise import Racer
from bench_scaling_options import Options, parse
from bench_scaling_problems import LITTLE_EFFORT, tiny_problems
from bench_scaling_report import reached, report

from kopt.actors.devices.base import describe
from kopt.data.manifest import cpu_model, versions
from kopt.errors import ConfigError

NOISY_GPUS = 2
"""Whose noise is looked at."""
START_S = 40.0
"""Of a fleet, before its limit counts."""
LEAST_S = 20.0
"""What a part needs to come to anything: with less it is not begun."""


class Bench:
    """The parts, one after the other, until the time is over."""

    def __init__(
        self, options: Options, *, gpus: tuple[str, ...], folder: Path, activity: Activity
    ) -> None:
        """Begin.

        Args:
            options: of the command line.
            gpus: names of those to use, as many as the largest fleet has.
            folder: for run folders and caches.
            activity: the GPUs' own record.
        """
        self._options = options
        self._gpus = gpus
        self._folder = folder
        self._activity = activity
        self._ends_s = time.monotonic() + options.limit_s
        cores = sorted(os.sched_getaffinity(0))
        self._shares = shares_of(cores, count=len(gpus))
        self._problems = options.problems or tiny_problems(folder, count=options.num_problems)
        self._stories: dict[str, Story] = {}
        self.result: dict[str, Any] = {"fleets": [], "kill": None, "noise": [], "missing": []}

    def run(self) -> None:
        """Run the parts that were asked for."""
        sizes = sorted({count for count in self._options.gpus if count <= len(self._gpus)})
        if "fleet" in self._options.parts:
            # The largest first: it is what the others are compared with, and its cache is kept.
            for count in reversed(sizes):
                for form in ("cold", "warm"):
                    self._part(f"{form}-{count}", lambda c=count, f=form: self._fleet(c, form=f))
        if "kill" in self._options.parts:
            self._part("kill", self._kill)
        if "noise" in self._options.parts:
            self._part("noise", self._noise)

    def _part(self, name: str, run: Any) -> None:  # noqa: ANN401 - a function without arguments
        if self.left_s < LEAST_S:
            self.result["missing"].append(name)
            return
        print(f"{self._options.limit_s - self.left_s:.0f} s: {name}", file=sys.stderr, flush=True)
        run()
        if self._options.out is not None:
            self._options.out.write_text(json.dumps(self.result), encoding="utf-8")

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._ends_s - time.monotonic())

    def _order(self, name: str, *, gpus: tuple[int, ...], cache: str, limit_s: float) -> Order:
        """Return the order of a fleet on GPUs by their places, with their shares of the cores."""
        return Order(
            name=name,
            device=self._options.device,
            gpus=tuple(self._gpus[place] for place in gpus),
            cores=frozenset(core for place in gpus for core in self._shares[place]),
            problems=self._problems,
            candidates=self._options.candidates,
            cache=self._folder / cache,
            limit_s=min(limit_s, max(1.0, self.left_s)),
            overrides=LITTLE_EFFORT if self._options.device == "cpu" else (),
        )

    def _fleet(self, count: int, *, form: str) -> None:
        order = self._order(
            f"{form}-{count}",
            gpus=tuple(range(count)),
            cache=f"cache-{count}",
            limit_s=self._options.fleet_s,
        )
        until_s = time.monotonic() + min(order.limit_s + START_S, self.left_s)
        with Fleet(order, self._folder) as fleet:
            fleet.watch(until_s=until_s)
            watched = fleet.stop()
        story = read_story(watched.run)
        figures = figures_of(watched, story)
        if figures["steady"] is not None:
            window = steady_window(story.judged_ns, places=figures["steady"]["places"])
            assert window is not None
            figures["steady"]["gpu_busy"] = self._activity.within(window, order.gpus)
        self._stories[order.name] = story
        self.result["fleets"].append({"form": form, **figures})

    def _kill(self) -> None:
        count = len(self._gpus)
        order = self._order(
            "kill",
            gpus=tuple(range(count)),
            cache=f"cache-{count}",
            limit_s=self._options.kill_s,
        )
        self.result["kill"] = run_and_kill(
            order,
            self._folder,
            whole=self._stories.get(f"warm-{count}"),
            until_s=time.monotonic() + min(order.limit_s + START_S, self.left_s),
        )

    def _noise(self) -> None:
        count = len(self._gpus)
        places = range(min(count, NOISY_GPUS))
        racers = {
            place: Racer(
                device=self._options.device,
                gpu=self._gpus[place],
                cores=self._shares[place],
                size_us=self._options.size_us,
                cache=self._folder / f"racer-{place}",
            )
            for place in places
        }
        others = {place: tuple(n for n in range(count) if n != place) for place in places}
        self.result["noise"] = noise_of(
            racers,
            loads={
                place: self._order(
                    f"load-{place}",
                    gpus=others[place],
                    cache=f"cache-{count}",
                    limit_s=self._options.limit_s,
                )
                for place in places
                if others[place]
            },
            folder=self._folder,
            wanted=Wanted(
                races=self._options.races,
                races_s=self._options.races_s,
                until_s=self._ends_s,
            ),
        )


def main() -> None:
    """Run and print."""
    options = parse([word for word in sys.argv[1:] if word != "--json"])
    if options.device == "fake":
        run_fake(options)
        return
    gpus = gpus_of(options.device, most=max(options.gpus))
    if not gpus:
        sys.exit("device=cuda: expected a GPU, found none; use device=cpu")
    try:
        target = describe(options.device)
    except ConfigError as error:
        sys.exit(str(error))
    began_s = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="scaling-", ignore_cleanup_errors=True) as folder,
        activity_of(options.device, gpus) as activity,
    ):
        bench = Bench(options, gpus=gpus, folder=Path(folder), activity=activity)
        bench.result |= {
            "device": options.device,
            "device_name": target.name,
            "gpus": len(gpus),
            "cpu": cpu_model(),
            "cores": len(os.sched_getaffinity(0)),
            "versions": versions(),
            "problems": list(options.problems) or f"{options.num_problems} tiny ones",
            "vllm": "not run: a pool needs wheels and a model, and this bench brings neither",
        }
        if len(gpus) < max(options.gpus):
            more = [count for count in options.gpus if count > len(gpus)]
            bench.result["missing"] += [f"{count} GPUs: {len(gpus)} are here" for count in more]
        try:
            bench.run()
        finally:  # what was measured until then is told, whatever ended it
            result = bench.result | {"wall_s": time.monotonic() - began_s} | reached(bench.result)
            if options.out is not None:
                options.out.write_text(json.dumps(result), encoding="utf-8")
            report(result)
    if "--json" in sys.argv:
        print(json.dumps(result))


def run_fake(options: Options) -> None:
    """Run fleets on pretended GPUs, and print."""
    rows = []
    for count in options.gpus:
        print(f"{count} pretended GPUs", file=sys.stderr, flush=True)
        rows.append(fake_fleet(gpus=count, searches=options.searches, pace_s=options.pace_s))
    result = {"device": "fake", "pace_s": options.pace_s, "rows": rows}
    if options.out is not None:
        options.out.write_text(json.dumps(result), encoding="utf-8")
    report_fake(rows)
    if "--json" in sys.argv:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
