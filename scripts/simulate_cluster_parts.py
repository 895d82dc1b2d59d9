"""The simulated parts of a cluster: model servers, build workers and devices that only sleep.

The driver, trees, journal and lanes (kopt.actors.lanes, with their choice of worker) are the real
ones; what a worker does is a sleep on the loop's virtual clock.
"""

from __future__ import annotations

import asyncio
import hashlib
from array import array
from collections import deque
from dataclasses import dataclass, field
from math import inf

from simulate_cluster_latencies import Latencies, Recorded

from kopt.actors.lanes import ActorLane
from kopt.candidate import Candidate, Language
from kopt.evaluation import Evaluation
from kopt.ports import Answer, Completion, Message, Usage, WriteRequest
from kopt.problem import Problem
from kopt.testing.fakes import evaluation_of, hashed_verdict

PROMPT = "What the prompt of an optimisation holds: the reference, findings, history. " * 100
SOURCE = "# a line of a kernel's source, as long as such lines are: out[i] = f(a[i]) + b[i]\n" * 30
"""About 8 and 2.5 kB: what the driver journals, keeps and reads again."""
SESSIONS = 2
"""Problems that a device keeps ready (kopt.actors.supervisor)."""
BUILT: Language = "cuda"
"""Goes through the build lane, as its import compiles it (kopt.actors.builder)."""
WRITTEN: tuple[Language, ...] = (BUILT, "triton")
"""Half of the candidates each."""


@dataclass(slots=True)
class Activity:
    """When devices held a candidate, in seconds of the loop's clock."""

    begins_s: array[float] = field(default_factory=lambda: array("d"))
    ends_s: array[float] = field(default_factory=lambda: array("d"))
    prepared_s: float = 0.0
    """Of it, spent on taking up problems."""

    def held_s(self, *, until_s: float) -> float:
        """Return device seconds held up to a time."""
        return sum(
            min(end_s, until_s) - begin_s
            for begin_s, end_s in zip(self.begins_s, self.ends_s, strict=True)
            if begin_s < until_s
        )


class ModelServers:
    """A Programmer: servers that each write so many answers at once; the least loaded is asked."""

    name = "simulated"

    def __init__(self, latencies: Latencies, *, servers: int, slots: int) -> None:
        """Start `servers` of `slots` answers each."""
        self._latencies = latencies
        self._free = [asyncio.Semaphore(slots) for _ in range(servers)]
        self._load = [0] * servers

    async def write(self, request: WriteRequest) -> Answer:
        """Write every candidate of an expansion, each a request of its own."""
        expansion = request.expansion
        origin = f"{request.search} {expansion.parent} {expansion.seed}"
        ideas = [expansion.first_child + index for index in range(expansion.num_candidates)]
        await asyncio.gather(*(self._serve(f"{origin} {idea}") for idea in ideas))
        candidates = tuple(
            Candidate(
                source=f"# {origin} {idea}\n{SOURCE}",
                language=WRITTEN[_digest(f"{origin} {idea}") % 2],
                parent=expansion.parent,
                strategy=f"{expansion.mode} idea {idea}",
                programmer=self.name,
            )
            for idea in ideas
        )
        usage = Usage(tokens_in=len(PROMPT) // 4, tokens_out=len(SOURCE) // 4)
        return Answer(
            candidates=candidates,
            messages=(Message("system", PROMPT), Message("user", origin)),
            completions=tuple(
                Completion(text=each.source, finish="stop", usage=usage) for each in candidates
            ),
        )

    async def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    async def _serve(self, key: str) -> None:
        number = min(range(len(self._load)), key=self._load.__getitem__)
        self._load[number] += 1
        async with self._free[number]:
            await asyncio.sleep(self._latencies.answer_s(key))
        self._load[number] -= 1


class ClusterEvaluator:
    """An Evaluator on the real lanes, whose workers sleep."""

    def __init__(self, latencies: Latencies, *, gpus: int, builders: int) -> None:
        """Start the lanes."""
        self.activity = Activity()
        self._latencies = latencies
        self._build = ActorLane(
            "build", lambda _: _Builder(), size=builders, max_retries=0, limit_s=inf, end=_leave
        )
        self._devices = ActorLane(
            "timing", self._device, size=gpus, max_retries=0, limit_s=inf, end=_leave
        )

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        """Build, verify and time."""
        verdict = hashed_verdict(problem, candidate)
        drawn = self._latencies.candidate(candidate.candidate_id, kind=verdict.kind)
        if candidate.language == BUILT:
            await self._build.call("build", drawn)
        if verdict.kind != "compile_failed":
            await self._devices.call("evaluate", drawn, problem.problem_id, key=problem.problem_id)
        return evaluation_of(verdict, problem=problem, candidate=candidate, device="simulated")

    def _device(self, number: int) -> _Device:
        return _Device(self.activity, self._latencies, number=number)


def _leave(actor: object) -> None:
    """End a worker that is no actor of Ray's."""
    del actor


class _Remote:
    """A method as Ray's handles have it."""

    def __init__(self, method: object) -> None:
        self.remote = method


class _Builder:
    def __init__(self) -> None:
        self.build = _Remote(self._build)

    async def _build(self, drawn: Recorded) -> None:
        await asyncio.sleep(drawn.built_s)


class _Device:
    """One candidate at a time; knows the problems that it had last."""

    def __init__(self, activity: Activity, latencies: Latencies, *, number: int) -> None:
        self.evaluate = _Remote(self._evaluate)
        self._activity = activity
        self._latencies = latencies
        self._number = number
        self._ready: deque[str] = deque(maxlen=SESSIONS)

    async def _evaluate(self, drawn: Recorded, problem: str) -> None:
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        prepare_s = 0.0
        if problem in self._ready:
            self._ready.remove(problem)
        else:
            prepare_s = self._latencies.prepare_s(f"{problem} {self._number}")
        self._ready.append(problem)
        await asyncio.sleep(prepare_s + drawn.held_s)
        self._activity.begins_s.append(begin_s)
        self._activity.ends_s.append(loop.time())
        self._activity.prepared_s += prepare_s


def _digest(text: str) -> int:
    return hashlib.blake2b(text.encode(), digest_size=2).digest()[0]
