"""What a watched run came to, folded from its journal event by event: pure, and bounded in memory.

Shown by kopt.cli.watch_view and, as JSON, by kopt.cli.watch_json.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

from kopt.cli.standing import Standing
from kopt.data.record import Record
from kopt.evaluation import EvalJson, rank
from kopt.events import (
    AgentCalled,
    AnswerReceived,
    DeviceQuarantined,
    EvidenceTaken,
    ExpansionCancelled,
    RunEnded,
    SearchEnded,
    VerdictReached,
)

RECENT_S = 600.0
"""What counts as recent: rates and failures are told of it beside those of the whole run."""
PAUSE_S = 900.0
"""Without an event for this long, nobody drove the run: it was killed, and resumed later."""
RECENT_WAITS = 200
"""Candidates over which waits are averaged: the last ones."""
LANE_WAITS = {"build": ("build_queued",), "timing": ("queued", "verify_queued", "timing_queued")}
"""Lane to the stages of a candidate's timeline in which it waits for a place on it."""
CANCELLED = "cancelled"
"""Kind of failure of an expansion that was given up: no programmer, no worker, a broken problem."""
QUARANTINE = "quarantine"
"""The same of a device that is not to be trusted any more."""


@dataclass(slots=True, kw_only=True)
class Failure:
    """Failures of one kind."""

    count: int = 0
    times_ns: deque[int] = field(default_factory=deque)
    """Of the recent ones."""
    newest: str = ""
    """Reason of the last one, a line."""
    search: str = ""
    """Where it was."""


@dataclass(frozen=True, slots=True)
class Step:
    """A problem's best became better."""

    time_ns: int
    speedup: float


@dataclass(slots=True, kw_only=True)
class Spending:
    """What models were paid, whatever they were asked."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0


class Watched:
    """A run as its journal tells it so far; `observe` takes its records in order."""

    def __init__(self, *, searches: int, budget: int) -> None:
        """Begin with nothing observed.

        Args:
            searches: of the whole fleet.
            budget: candidates told in one search, at most; 0 where it is not known.
        """
        self.standing = Standing(searches=searches, budget=budget)
        self.kinds: Counter[str] = Counter()
        """Kind of verdict to how many."""
        self.cached = 0
        """Verdicts that were known before."""
        self.failures: dict[str, Failure] = {}
        """By kind of verdict, or CANCELLED."""
        self.trends: dict[str, list[Step]] = {}
        """Problem name to the steps of its best."""
        self.best: dict[str, EvalJson] = {}
        """Search to its best correct candidate, as results rank; only searches that have one."""
        self.spending = Spending()
        self.answers = 0
        self.profiles = 0
        """Candidates that were profiled."""
        self.stages_s: defaultdict[str, float] = defaultdict(float)
        """Stage to the seconds in it, over all candidates that were run."""
        self.waits: dict[str, deque[float]] = {}
        """Lane to the seconds that each of the last candidates waited for it."""
        self.ended: RunEnded | None = None
        self.first_ns = 0
        self.last_ns = 0
        self._active_s = 0.0
        self._live_ns: deque[int] = deque()
        """When each recent candidate that was run had its verdict."""

    def observe(self, record: Record) -> None:
        """Take one more record in."""
        self._pass_to(record.time_ns)
        body = record.body
        self.ended = body if isinstance(body, RunEnded) else None
        self.standing.observe(record.search, body)
        if isinstance(body, VerdictReached):
            self._judged(record, body)
        elif isinstance(body, EvidenceTaken):
            self.profiles += body.ref is not None and not body.cached
            self.stages_s["profiled"] += body.profiled_s
        elif isinstance(body, ExpansionCancelled):
            if not body.exhausted:
                self._failed(record, CANCELLED, body.reason)
        elif isinstance(body, SearchEnded) and body.failed:
            self._failed(record, "search failed", body.reason)
        elif isinstance(body, AnswerReceived):
            self.answers += 1
        elif isinstance(body, DeviceQuarantined):
            self._failed(record, QUARANTINE, f"{body.device_name} {body.device}: {body.reason}")
        if not (isinstance(body, AgentCalled) and record.search):  # its answer has the bill
            self._pay(body)

    @property
    def live(self) -> int:
        """Candidates that were run: verdicts, without those that were known before."""
        return self.kinds.total() - self.cached

    def active_s(self, *, now_ns: int) -> float:
        """Return the seconds from the first event until now, without the pauses."""
        since_s = (now_ns - self.last_ns) / 1e9 if self.first_ns else 0.0
        return self._active_s + min(max(0.0, since_s), PAUSE_S)

    def live_per_hour(self, *, num_devices: int, now_ns: int) -> float | None:
        """Return candidates run to the hour of one device, over the run; None before any."""
        active_s = self.active_s(now_ns=now_ns)
        if not self.live or active_s <= 0.0:
            return None
        return 3600.0 * self.live / (active_s * num_devices)

    def recent_per_hour(self, *, num_devices: int, now_ns: int) -> float | None:
        """Return the same over the last RECENT_S; None before any, or if none was run then."""
        self._forget_before(now_ns)
        window_s = min(RECENT_S, self.active_s(now_ns=now_ns))
        if not self._live_ns or window_s <= 0.0:
            return None
        return 3600.0 * len(self._live_ns) / (window_s * num_devices)

    def recent_failures(self, *, now_ns: int) -> dict[str, int]:
        """Return how many failures of each kind there were in the last RECENT_S."""
        for failure in self.failures.values():
            _drop_before(failure.times_ns, now_ns)
        return {kind: len(failure.times_ns) for kind, failure in self.failures.items()}

    def share_of_devices(self, stage: str, *, num_devices: int, now_ns: int) -> float | None:
        """Return the share of the devices' time that a stage took, 0 to 1; None before any."""
        active_s = self.active_s(now_ns=now_ns)
        return min(1.0, self.stages_s[stage] / (active_s * num_devices)) if active_s else None

    def _pass_to(self, time_ns: int) -> None:
        if not self.first_ns:
            self.first_ns = self.last_ns = time_ns
        passed_s = (time_ns - self.last_ns) / 1e9
        if 0.0 < passed_s < PAUSE_S:
            self._active_s += passed_s
        self.last_ns = max(self.last_ns, time_ns)

    def _judged(self, record: Record, body: VerdictReached) -> None:
        evaluation = body.eval
        kind = evaluation["kind"]
        self.kinds[kind] += 1
        problem = self.standing.searches[record.search].problem
        best = self.standing.best.get(problem)
        trend = self.trends.setdefault(problem, [])
        if best is not None and (not trend or trend[-1].speedup != best.speedup):
            trend.append(Step(record.time_ns, best.speedup))
        if kind == "correct":
            known = self.best.get(record.search)
            if known is None or rank(evaluation) > rank(known):
                self.best[record.search] = evaluation
        else:
            self._failed(record, kind, evaluation["reason"])
        if body.cached:
            self.cached += 1
            return
        self._live_ns.append(record.time_ns)
        self._forget_before(record.time_ns)
        timeline_s = evaluation["timeline_s"]
        for stage, seconds in timeline_s.items():
            self.stages_s[stage] += seconds
        for lane, stages in LANE_WAITS.items():
            if any(stage in timeline_s for stage in stages):
                waits = self.waits.setdefault(lane, deque(maxlen=RECENT_WAITS))
                waits.append(sum(timeline_s.get(stage, 0.0) for stage in stages))

    def _failed(self, record: Record, kind: str, reason: str) -> None:
        failure = self.failures.setdefault(kind, Failure())
        failure.count += 1
        failure.times_ns.append(record.time_ns)
        _drop_before(failure.times_ns, record.time_ns)
        failure.newest = " ".join(reason.split())
        failure.search = record.search

    def _pay(self, body: object) -> None:
        """Count what any event says that a model was paid."""
        self.spending.tokens_in += getattr(body, "tokens_in", 0)
        self.spending.tokens_out += getattr(body, "tokens_out", 0)
        self.spending.cost_usd += getattr(body, "cost_usd", 0.0)

    def _forget_before(self, now_ns: int) -> None:
        _drop_before(self._live_ns, now_ns)


def _drop_before(times_ns: deque[int], now_ns: int) -> None:
    oldest_ns = now_ns - round(1e9 * RECENT_S)
    while times_ns and times_ns[0] < oldest_ns:
        times_ns.popleft()
