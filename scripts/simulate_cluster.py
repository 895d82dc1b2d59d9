"""The real driver, trees, journal and lanes on a simulated cluster: utilisation, time to finish.

Usage: python scripts/simulate_cluster.py [rows=GPUS:SERVERS:TREES,…] [candidates=60] [slots=512]
           [builders=8] [per_search=4] [seed=0] [workers=N] [recorded=FILE] [--json]

A virtual clock jumps over what devices, build workers and model servers would sleep; the work that
the driver really does passes on it too. Seconds are drawn from recordings and published figures
(simulate_cluster_latencies.py). `slots` are the answers that a model server writes at once,
`builders` the build workers of each GPU, `per_search` the expansions in flight of one tree.
`workers` rows are simulated at once, each in a process of its own.

A row's utilisation is the share of its GPUs' time in which they hold a candidate, from the first
candidate that reaches a device for as long as there are enough trees: two that go on for each GPU.
`whole` is the same until the last candidate, when a few trees wait for their last answers. The
driver's milliseconds are of its processor, for each candidate, with the journal's and the
simulation's own.
The last line with --json is one object, `ratio` last: the least utilisation of the rows with one
model server for each 16 GPUs.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

from simulate_cluster_latencies import RECORDED, Latencies, read_recorded
from simulate_cluster_parts import ClusterEvaluator, ModelServers

from kopt.cli.collector import calm_collector
from kopt.data.journal import Journal
from kopt.driver.loop import Driver, Pace
from kopt.driver.task import SearchSpec, SearchTask
from kopt.events import EventBody, SearchEnded
from kopt.ports import EventSink, Target
from kopt.problem import Problem
from kopt.reward import RewardRule
from kopt.search.config import MctsConfig
from kopt.search.searches import create_search
from kopt.testing.virtual_time import run_in_virtual_time

ROWS = "8:1:60,32:2:160,64:4:300,128:8:400,256:16:700,512:32:1200,1024:64:2200,256:1:300"
DEFAULTS = {
    "rows": ROWS,
    "candidates": "60",
    "slots": "512",
    "builders": "8",
    "per_search": "4",
    "seed": "0",
    "workers": str(len(os.sched_getaffinity(0))),
    "recorded": str(RECORDED),
}
GPUS_PER_SERVER = 16
"""What counts as enough model servers."""
TREES_PER_GPU = 2
"""What counts as enough trees: one keeps 0.5 to 1 GPU at work, by how long its answers take."""
EPOCH_NS = 1_700_000_000 * 10**9
TARGET = Target(
    device="cuda", name="simulated", arch="sm_90", languages=("triton", "cuda", "torch")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One row's cluster and fleet."""

    gpus: int
    servers: int
    trees: int
    candidates: int
    """Of each tree."""
    slots: int
    builders: int
    """Of each GPU."""
    per_search: int
    seed: int
    recorded: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came of it."""

    gpus: int
    servers: int
    trees: int
    candidates: int
    utilisation: float
    """Share of GPU time held by candidates while there are enough trees, 0 to 1."""
    whole: float
    """The same from the first candidate on a device to the last."""
    preparing: float
    """Share of the held time that went to taking up problems."""
    ramp_s: float
    """Until a device had its first candidate."""
    enough_s: float
    """Until there were not enough trees any more."""
    finish_s: float
    """Until the fleet was done."""
    driver_ms: float
    """Processor milliseconds for each candidate."""
    driver_share: float
    """Processor seconds to virtual seconds: 1 is a driver that can do no more."""
    rss_mb: float
    """Most memory of the process."""
    real_s: float


class _LoopClock:
    """The Clock port on a virtual loop."""

    def __init__(self) -> None:
        self.read_s: Callable[[], float] = lambda: 0.0

    def now_ns(self) -> int:
        return EPOCH_NS + round(1e9 * self.read_s())

    def monotonic_s(self) -> float:
        return self.read_s()


class _EndsSink:
    """An EventSink that notes when each search ended."""

    def __init__(self, sink: EventSink, clock: _LoopClock) -> None:
        self._sink = sink
        self._clock = clock
        self.ends_s: list[float] = []

    def append(self, search: str, body: EventBody) -> int:
        if isinstance(body, SearchEnded):
            self.ends_s.append(self._clock.monotonic_s())
        return self._sink.append(search, body)

    def put_text(self, text: str) -> str:
        return self._sink.put_text(text)

    def get_text(self, sha256: str) -> str:
        return self._sink.get_text(sha256)


def main() -> None:
    """Simulate and print."""
    given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    unknown = set(given) - set(DEFAULTS)
    if unknown:
        sys.exit(f"unknown {', '.join(sorted(unknown))}; there are: {', '.join(DEFAULTS)}")
    options = {**DEFAULTS, **given}
    try:
        scenes, workers = _scenes(options), int(options["workers"])
        read_recorded(Path(options["recorded"]))
    except (OSError, ValueError) as error:
        sys.exit(f"expected words such as rows=64:4:400 candidates=60: {error}")
    began_s = time.monotonic()
    report(_simulate_all(scenes, workers=workers), real_s=time.monotonic() - began_s)


def _simulate_all(scenes: list[Scene], *, workers: int) -> list[Row]:
    """Simulate some at once, each in a process of its own; one alone in this one."""
    if len(scenes) == 1:
        return [simulate(scenes[0])]
    # The longest first, so that no worker ends with it alone.
    order = sorted(range(len(scenes)), key=lambda place: -scenes[place].trees)
    rows: dict[int, Row] = {}
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        done = zip(order, pool.map(simulate, [scenes[place] for place in order]), strict=True)
        for place, row in done:
            rows[place] = row
            print(f"  {row.gpus} GPUs: {row.real_s:.0f} s", file=sys.stderr)
    return [rows[place] for place in range(len(scenes))]


def _scenes(options: dict[str, str]) -> list[Scene]:
    common = {
        name: int(options[name])
        for name in ("candidates", "slots", "builders", "per_search", "seed")
    }
    scenes = []
    for text in options["rows"].split(","):
        gpus, servers, trees = (int(word) for word in text.split(":"))
        if min(gpus, servers, trees, *list(common.values())[:4]) < 1:
            raise ValueError(f"{text}: all counts are 1 or more")
        scenes.append(
            Scene(gpus=gpus, servers=servers, trees=trees, recorded=options["recorded"], **common)
        )
    return scenes


def simulate(scene: Scene) -> Row:
    """Run one fleet to its end."""
    began_s = time.monotonic()
    latencies = Latencies(read_recorded(Path(scene.recorded)), seed=scene.seed)
    config = MctsConfig(iterations=max(1, scene.candidates // 2), candidates=2)
    tasks = [_task(config, number, seed=scene.seed) for number in range(scene.trees)]
    clock = _LoopClock()
    pace = Pace(
        max_in_flight=2 * scene.gpus
        + scene.builders * scene.gpus
        + scene.servers * scene.slots // config.candidates,
        max_per_search=scene.per_search,
    )
    with (
        tempfile.TemporaryDirectory(prefix="simulate-", ignore_cleanup_errors=True) as folder,
        Journal(folder, run="simulate", clock=clock) as journal,
        calm_collector(),
    ):
        sink = _EndsSink(journal, clock)

        async def drive() -> tuple[ClusterEvaluator, float, float]:
            clock.read_s = asyncio.get_running_loop().time
            evaluator = ClusterEvaluator(
                latencies, gpus=scene.gpus, builders=scene.builders * scene.gpus
            )
            driver = Driver(
                tasks,
                programmer=ModelServers(latencies, servers=scene.servers, slots=scene.slots),
                evaluator=evaluator,
                sink=sink,
                clock=clock,
                target=TARGET,
                pace=pace,
            )
            began_cpu_s = time.process_time()
            await driver.run()
            return evaluator, clock.read_s(), time.process_time() - began_cpu_s

        evaluator, finish_s, cpu_s = run_in_virtual_time(drive(), work_s=time.process_time)
    activity = evaluator.activity
    first_s, last_s = min(activity.begins_s), max(activity.ends_s)
    spare = max(0, scene.trees - TREES_PER_GPU * scene.gpus)
    until_s = min(last_s, sink.ends_s[min(spare, scene.trees - 1)])
    told = sum(task.tree.told() for task in tasks)
    return Row(
        gpus=scene.gpus,
        servers=scene.servers,
        trees=scene.trees,
        candidates=told,
        utilisation=activity.held_s(until_s=until_s) / (scene.gpus * (until_s - first_s)),
        whole=activity.held_s(until_s=last_s) / (scene.gpus * (last_s - first_s)),
        preparing=activity.prepared_s / activity.held_s(until_s=last_s),
        ramp_s=first_s,
        enough_s=until_s,
        finish_s=finish_s,
        driver_ms=1e3 * cpu_s / told,
        driver_share=cpu_s / finish_s,
        rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        real_s=time.monotonic() - began_s,
    )


def _task(config: MctsConfig, number: int, *, seed: int) -> SearchTask:
    spec = SearchSpec(
        problem=Problem(name=f"simulated/{number}", source=f"# {number}"),
        arm="simulated",
        seed=seed,
        policy="mcts",
        policy_config={"search": config.model_dump(), "reward": {}},
    )
    return SearchTask(spec=spec, tree=create_search(config, rule=RewardRule(), seed=seed))


def report(rows: list[Row], *, real_s: float) -> None:
    """Print the table, and the object."""
    print(
        f"{'GPUs':>5}{'servers':>8}{'trees':>7}{'candidates':>11}{'utilised':>9}{'whole':>7}"
        f"{'preparing':>10}{'first':>7}{'finish':>9}{'driver':>18}{'memory':>9}{'real':>7}"
    )
    for row in rows:
        print(
            f"{row.gpus:>5}{row.servers:>8}{row.trees:>7}{row.candidates:>11}"
            f"{row.utilisation:>9.1%}{row.whole:>7.1%}{row.preparing:>10.1%}{row.ramp_s:>6.0f}s"
            f"{row.finish_s:>8.0f}s{row.driver_ms:>9.2f} ms {row.driver_share:>4.0%}"
            f"{row.rss_mb:>6.0f} MB{row.real_s:>5.0f} s"
        )
    enough = [row for row in rows if row.servers * GPUS_PER_SERVER >= row.gpus]
    totals = {
        "real_s": real_s,
        "candidates": sum(row.candidates for row in rows),
        "driver_ms": max(row.driver_ms for row in rows),
        "rss_mb": max(row.rss_mb for row in rows),
        "ratio": min((row.utilisation for row in enough), default=0.0),
    }
    print(
        f"least utilisation with enough servers {totals['ratio']:.1%}; driver at most "
        f"{totals['driver_ms']:.2f} ms a candidate, {totals['rss_mb']:.0f} MB; {real_s:.0f} s"
    )
    if "--json" in sys.argv:
        print(json.dumps({"rows": [asdict(row) for row in rows], **totals}))


if __name__ == "__main__":
    main()
