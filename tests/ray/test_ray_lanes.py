"""Lanes on a real local Ray: actors that die, hang and raise, and the evaluator through them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import ray

from kopt.actors.cluster import open_cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.actors.lanes import ActorLane
from kopt.actors.pool import RayEvaluator
from kopt.actors.quiet import Quiet
from kopt.candidate import Candidate
from kopt.errors import ProblemError, WorkerLost
from kopt.problem import Problem

pytestmark = [pytest.mark.ray, pytest.mark.slow]

CLUSTER = ClusterConfig(num_cpus=2, max_retries=1)
EVALUATE = EvaluateConfig(
    secret=7,
    compile=False,
    trials=1,
    memory_gib=4.0,
    timeouts=TimeoutConfig(correctness_s=60.0),
    timing=TimingConfig(min_pairs=4, max_pairs=4, block_ms=4.0),
)
PROBLEM = Problem(
    name="doubled",
    source="""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


def get_inputs():
    return [torch.rand(256, 256)]
""",
)
RIGHT = Candidate(
    source=PROBLEM.source.replace("class Model(", "class ModelNew("), language="torch"
)


SENT_S = 1.0
"""Most that a call may be on its way to a worker and back, on a host with much else to do."""


class Clerk:
    """Does what it is told, once or always."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.seen: list[str] = []

    def note(self, word: str) -> tuple[int, list[str]]:
        self.seen.append(word)
        return self.number, self.seen

    def die_unless(self, path: str) -> str:
        """Die, leaving a file by which the next one knows better."""
        if not Path(path).exists():
            Path(path).touch()
            os._exit(1)
        return "alive"

    def die(self) -> None:
        os._exit(1)

    def hang(self) -> None:
        time.sleep(600)

    def hang_unless(self, path: str) -> str:
        if not Path(path).exists():
            Path(path).touch()
            time.sleep(600)
        return "awake"

    def refuse(self) -> None:
        raise ProblemError("doubled", "it is odd")

    def meet(self, folder: str, name: str, others: int) -> int:
        """Wait for calls of other names in the same actor; return its process."""
        place = Path(folder, str(os.getpid()))
        place.mkdir(exist_ok=True)
        (place / name).touch()
        while len(os.listdir(place)) < others + 1:
            time.sleep(0.01)
        return os.getpid()

    def die_beside(self, folder: str, name: str) -> int:
        """Die once there are two in this actor, in the first one alone."""
        pid = self.meet(folder, name, 1)
        if len(os.listdir(folder)) == 1:
            os._exit(1)
        return pid

    def err(self, kind: type[Exception]) -> None:
        raise kind("a bug of ours")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    logs = tmp_path_factory.mktemp("logs")
    with open_cluster(CLUSTER, device="cpu", log_dir=logs) as opened:
        yield opened
    ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def lane(cluster):
    lanes = []

    def make(
        *,
        size: int = 1,
        retries: int = 1,
        limit_s: float = 60.0,
        depth: int = 1,
        started: int | None = None,
    ) -> ActorLane:
        def start(number: int):
            options = cluster.options("verify")
            return ray.remote(Clerk).options(max_concurrency=depth, **options).remote(number)

        lanes.append(
            ActorLane(
                "verify",
                start,
                size=size,
                max_retries=retries,
                limit_s=limit_s,
                depth=depth,
                started=started,
            )
        )
        return lanes[-1]

    yield make
    for each in lanes:
        each.close()


def test_a_cpu_judges_one_at_a_time_and_one_worker_does_all_builds_of_a_node(cluster) -> None:
    assert (cluster.in_flight, cluster.warm_children, cluster.sessions) == (1, 1, 3)
    assert cluster.builds_of_worker == cluster.build_workers == 2
    assert cluster.options("build")["max_concurrency"] == 2
    on_gpu = replace(cluster, device="cuda", in_flight=3)
    # One place more than candidates: a problem is taken up beside them.
    assert on_gpu.options("timing")["max_concurrency"] == 4


def test_a_call_whose_actor_died_is_tried_on_a_new_one(lane, tmp_path) -> None:
    async def scenario() -> str:
        answer, _ = await lane().call("die_unless", str(tmp_path / "mark"))
        return answer

    assert asyncio.run(scenario()) == "alive"


def test_an_actor_that_dies_every_time_is_a_lost_worker_and_the_lane_goes_on(lane) -> None:
    async def scenario():
        clerks = lane(retries=2)
        with pytest.raises(WorkerLost, match=r"verify-0 ended without an answer \(died: "):
            await clerks.call("die")
        return await clerks.call("note", "after")

    (number, seen), _ = asyncio.run(scenario())
    assert (number, seen) == (0, ["after"])


def test_a_hung_actor_is_killed_and_its_call_tried_on_a_new_one(lane, tmp_path) -> None:
    async def scenario() -> str:
        clerks = lane(limit_s=20.0)
        await clerks.call("note", "started")  # what follows counts from a running actor
        clerks._limit_s = 2.0
        answering = asyncio.create_task(clerks.call("hang_unless", str(tmp_path / "mark")))
        await asyncio.wait([answering], timeout=0.5)
        clerks._limit_s = 60.0
        answer, _ = await answering
        return answer

    assert asyncio.run(scenario()) == "awake"


def test_an_actor_that_always_hangs_is_a_lost_worker(lane) -> None:
    async def scenario() -> None:
        with pytest.raises(WorkerLost, match="did not answer within 1 s"):
            await lane(retries=0, limit_s=1.0).call("hang")

    asyncio.run(scenario())


def test_what_a_method_raises_on_purpose_keeps_its_class_and_its_words(lane) -> None:
    async def scenario() -> None:
        with pytest.raises(ProblemError) as caught:
            await lane().call("refuse")
        assert type(caught.value) is ProblemError
        assert (caught.value.problem, caught.value.why) == ("doubled", "it is odd")

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", [KeyError, TimeoutError])
def test_a_bug_in_a_method_is_a_lost_worker_without_a_retry(lane, kind) -> None:
    async def scenario():
        clerks = lane()
        await clerks.call("note", "before")
        with pytest.raises(WorkerLost, match=f"err raised {kind.__name__}"):
            await clerks.call("err", kind)
        return await clerks.call("note", "after")

    (_, seen), _ = asyncio.run(scenario())
    assert seen == ["before", "after"]  # the same actor: it is not at fault


def test_calls_of_a_key_go_to_the_actor_that_is_warm_for_it(lane) -> None:
    async def scenario():
        clerks = lane(size=2)
        first = [await clerks.call("note", key, key=key) for key in ("a", "b")]
        again = [await clerks.call("note", key, key=key) for key in ("b", "a", "b", "a")]
        return first, again

    first, again = asyncio.run(scenario())
    homes = {seen[0]: number for (number, seen), _ in first}
    assert set(homes.values()) == {0, 1}
    for (number, seen), _ in again:
        assert set(seen) == {seen[0]}
        assert homes[seen[0]] == number


def test_no_actor_runs_two_calls_and_every_call_is_answered(lane) -> None:
    async def scenario():
        clerks = lane(size=2)
        return await asyncio.gather(*(clerks.call("note", str(n)) for n in range(20)))

    answers = asyncio.run(scenario())
    lengths: dict[int, list[int]] = {}
    for (number, seen), _ in answers:
        lengths.setdefault(number, []).append(len(seen))
    assert sorted(lengths) == [0, 1]
    for counts in lengths.values():
        assert sorted(counts) == list(range(1, len(counts) + 1))


def test_an_actor_of_depth_two_runs_two_calls_at_a_time_and_the_least_busy_is_lent(
    lane, tmp_path
) -> None:
    async def scenario():
        clerks = lane(size=2, depth=2)
        names = ("a", "b", "c", "d")
        calls = [
            asyncio.create_task(clerks.call("meet", str(tmp_path), name, 1, key="same"))
            for name in names
        ]
        await asyncio.wait(calls, timeout=0)
        before = clerks.load()
        return [pid for pid, _ in await asyncio.gather(*calls)], before, clerks.load()

    pids, before, after = asyncio.run(scenario())
    assert (before.num_calls, before.num_places, before.num_waiting) == (4, 4, 0)
    assert (after.num_calls, after.num_waiting) == (0, 0)
    # Four calls at a time, and none that was longer than the lane.
    assert before.busy_s < after.busy_s <= 4 * after.began_s
    assert sorted(pids.count(pid) for pid in set(pids)) == [2, 2]


def test_calls_beside_one_whose_actor_died_are_tried_on_one_new_actor(lane, tmp_path) -> None:
    async def scenario():
        clerks = lane(depth=2)
        answers = await asyncio.gather(
            *(clerks.call("die_beside", str(tmp_path), name) for name in ("a", "b"))
        )
        return {pid for pid, _ in answers}

    assert len(asyncio.run(scenario())) == 1
    assert len(os.listdir(tmp_path)) == 2  # the one that died, and one in its place


def test_actors_that_are_not_needed_yet_are_started_with_a_call_for_them(lane, tmp_path) -> None:
    async def scenario():
        clerks = lane(size=2, started=1)
        started = len(await clerks.each("note", "here"))
        await asyncio.gather(*(clerks.call("note", name) for name in ("a", "b")))
        # Whoever is free first serves the second call; the new actor comes up all the same.
        return started, len(await clerks.each("note", "here"))

    assert asyncio.run(scenario()) == (1, 2)


def test_a_cancelled_call_gives_its_place_to_the_next(lane) -> None:
    async def scenario():
        clerks = lane()
        await clerks.call("note", "started")
        hanging = asyncio.create_task(clerks.call("hang"))
        waiting = asyncio.create_task(clerks.call("note", "never"))
        await asyncio.wait([hanging, waiting], timeout=0.2)
        waiting.cancel()
        hanging.cancel()
        await asyncio.gather(hanging, waiting, return_exceptions=True)
        return await clerks.call("note", "next")

    (_, seen), _ = asyncio.run(scenario())
    assert seen == ["next"]  # of a new actor


def test_a_call_that_is_cancelled_beside_another_runs_on_and_costs_the_other_nothing(
    lane, tmp_path
) -> None:
    async def scenario():
        clerks = lane(depth=2, retries=0)
        first, second = (
            asyncio.create_task(clerks.call("meet", str(tmp_path), name, 2)) for name in "ab"
        )
        while not list(tmp_path.glob("*/a")) or not list(tmp_path.glob("*/b")):
            await asyncio.wait([first, second], timeout=0.05)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        places = clerks.load().num_calls
        (folder,) = tmp_path.iterdir()
        (folder / "c").touch()  # both may end
        answer, _ = await first
        while clerks.load().num_calls:
            await asyncio.wait([asyncio.create_task(asyncio.sleep(0.05))])
        return places, answer == int(folder.name)

    # The one that was given up keeps its place until it ends in there.
    assert asyncio.run(scenario()) == (2, True)


def test_nobody_waits_for_a_call_that_is_cancelled_once_its_lane_is_closed(lane, tmp_path) -> None:
    """A fleet that is stopped closes its lanes; what waited on would outlive the loop."""

    async def scenario():
        clerks = lane(depth=2, retries=0)
        calls = [asyncio.create_task(clerks.call("meet", str(tmp_path), name, 2)) for name in "ab"]
        while not list(tmp_path.glob("*/a")) or not list(tmp_path.glob("*/b")):
            await asyncio.wait(calls, timeout=0.05)
        clerks.close()
        for each in calls:
            each.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(scenario()) == set()


def test_a_method_beside_the_calls_takes_no_place_and_what_it_refuses_is_heard(
    lane, tmp_path
) -> None:
    async def scenario():
        clerks = lane(depth=1)
        await clerks.call("note", "started", key="one")
        with pytest.raises(ProblemError, match="it is odd"):
            await clerks.beside("refuse", key="one")
        await clerks.beside("die", key="one")  # nobody waits for it
        answer, _ = await clerks.call("note", "after")
        return answer, clerks.load().num_calls

    assert asyncio.run(scenario()) == ((0, ["after"]), 0)


def test_what_the_workers_die_of_is_not_printed_on_stdout(lane, capfd) -> None:
    async def scenario() -> None:
        with pytest.raises(WorkerLost):
            await lane(retries=0).call("die")

    asyncio.run(scenario())
    assert capfd.readouterr().out == ""


@pytest.fixture(scope="module")
def run():
    """Returns a function that runs a scenario, all of them in one loop: evaluators outlive them."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="module")
def evaluator(cluster, run, tmp_path_factory):
    made = RayEvaluator(
        cluster,
        config=CLUSTER,
        evaluate=EVALUATE,
        cache_dir=tmp_path_factory.mktemp("evaluator"),
        quiet=Quiet("cpu"),
    )
    yield made
    made.close()


def test_verdicts_through_ray_are_those_of_a_worker_in_this_process(
    evaluator, run, tmp_path
) -> None:
    from kopt.actors.builder import nothing_to_build
    from kopt.actors.device_worker import DeviceWorker

    wrong = Candidate(source=RIGHT.source.replace("torch.relu(x)", "x"), language="torch")
    candidates = (RIGHT, wrong)

    async def scenario():
        return [await evaluator.evaluate(PROBLEM, candidate) for candidate in candidates]

    remote = run(scenario())
    worker = DeviceWorker(EVALUATE, "cpu", 0, str(tmp_path))
    try:
        local = [
            worker.evaluate(PROBLEM, candidate, nothing_to_build(candidate, cache_dir=tmp_path))
            for candidate in candidates
        ]
    finally:
        worker.close()
    assert [each.verdict.kind for each in remote] == ["correct", "incorrect"]
    assert remote[0].verdict.error == local[0].verdict.error
    assert remote[1].verdict == local[1].verdict
    assert [check.name for check in remote[0].checks] == [check.name for check in local[0].checks]
    assert "queued" in remote[0].timeline_s


def command_line(pid: int) -> list[str]:
    """Of a process; empty once it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def ancestors(pid: int) -> list[int]:
    """The process and those above it, up to the first one."""
    found = []
    while pid > 1:
        found.append(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def test_a_device_worker_killed_in_the_middle_is_replaced_and_leaves_no_process(
    evaluator, run, tmp_path
) -> None:
    hang = tmp_path / "hang"
    hang.touch()
    # Hangs while that file is there, with a process in a session of its own; then it is right.
    body = f"""
import pathlib, subprocess
def hang_once():
    if not pathlib.Path({str(hang)!r}).exists():
        return
    subprocess.Popen(["setsid", "sleep", "98200"])
    while True:
        pass
"""
    source = body + RIGHT.source.replace(
        "return torch.relu", "hang_once()\n        return torch.relu"
    )

    def strays() -> list[int]:
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return [pid for pid in pids if command_line(pid)[:2] == ["sleep", "98200"]]

    async def scenario():
        judging = asyncio.create_task(
            evaluator.evaluate(PROBLEM, Candidate(source=source, language="torch"))
        )
        while not strays():
            assert not judging.done(), judging.result()
            await asyncio.sleep(0.05)
        above = ancestors(strays()[0])
        (actor,) = [pid for pid in above if command_line(pid)[0].startswith("ray::Device")]
        hang.unlink()
        os.kill(actor, signal.SIGKILL)
        return await judging, above[: above.index(actor)]

    made, below = run(asyncio.wait_for(scenario(), 120.0))
    assert made.verdict.kind == "correct", made.verdict.reason
    deadline_s = time.monotonic() + 20.0
    while any(Path(f"/proc/{pid}").exists() for pid in below) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]


@pytest.fixture
def crowded(cluster, tmp_path):
    """Its device judges three at a time, as a GPU's does."""
    made = RayEvaluator(
        replace(cluster, in_flight=3, warm_children=2),
        config=CLUSTER,
        evaluate=EVALUATE,
        cache_dir=tmp_path,
        quiet=Quiet("none"),
    )
    yield made
    made.close()


@pytest.mark.parametrize("which", ["evaluator", pytest.param("crowded", marks=pytest.mark.soak)])
def test_the_seconds_of_the_stages_add_up_to_those_from_asked_to_told(which, run, request) -> None:
    judge = request.getfixturevalue(which)
    right = PROBLEM.source.replace("class Model(", "class ModelNew(")
    sources = [f"{right}\n# {number}" for number in range(3)]
    sources.append(right.replace("* 2", "* 3"))
    crash = "import ctypes; ctypes.string_at(8)\n        return torch.relu"
    sources.append(right.replace("return torch.relu", crash))
    sources.append("import no_such_part\n" + right)

    async def one(source: str):
        asked_s = time.monotonic()
        made = await judge.evaluate(PROBLEM, Candidate(source=source, language="torch"))
        return made, time.monotonic() - asked_s

    async def scenario():
        await judge.target()
        await one(right)  # what is started is started
        return await asyncio.gather(*map(one, sources))

    outcomes = run(asyncio.wait_for(scenario(), 240.0))
    kinds = [made.verdict.kind for made, _ in outcomes]
    assert kinds == ["correct"] * 3 + ["incorrect", "crashed", "compile_failed"], kinds
    for made, wall_s in outcomes:
        accounted_s = sum(made.timeline_s.values())
        assert accounted_s == pytest.approx(wall_s, rel=0.05)
        assert accounted_s - made.timeline_s["sent"] == pytest.approx(wall_s, rel=0.05, abs=SENT_S)
        assert {"queued", "built", "prepared", "verify_queued", "forked"} <= made.timeline_s.keys()
