"""The driver's loop: ask the trees, dispatch, wait for any completion, tell.

Invariant: every slot of every expansion that a tree asks for is told or cancelled exactly once,
whatever dies. While this process lives, an expansion's life (kopt.driver.life) sees to it; when
it is killed, or suspended because all that is left waits for answers, the journal shows which
slots are open and `Unfinished` continues them.

One thread, one asyncio loop; trees are touched by nobody else. Searches are started in order, and
a later one only when the earlier ones have nothing to ask, so that work on one problem stays
together (its reference and baselines are kept warm by the device that judges it).
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from kopt.agent_call import Staffed
from kopt.driver.agent_desk import AgentDesk
from kopt.driver.asked import asked_event
from kopt.driver.life import ExpansionLife
from kopt.driver.limits import Limits, Spent
from kopt.driver.memories import Memories, Remembering
from kopt.driver.order import Step
from kopt.driver.profiles import Profiles, Profiling
from kopt.driver.stops import StopRule
from kopt.driver.table import Table
from kopt.driver.task import SearchTask
from kopt.driver.turns import Turns
from kopt.driver.verdicts import SharedVerdicts
from kopt.events import ExpansionAsked, RunEnded, SearchEnded
from kopt.ports import Clock, Evaluator, EventSink, Programmer, Target, Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How much the driver has under way at once."""

    max_in_flight: int
    """Expansions over the whole fleet, >= 1."""
    max_per_search: int | None = None
    """The same over one search; None for no bound of its own. A tree that asks for much before it
    hears of anything decides on little."""
    deterministic: bool = False
    """One expansion in flight for each search, told in slot order."""

    def may_ask(self, in_flight: int) -> bool:
        """Return whether a search with so many expansions in flight may ask for another."""
        bound = 1 if self.deterministic else self.max_per_search
        return bound is None or in_flight < bound


class Driver:
    """Runs a fleet of searches to their end."""

    def __init__(
        self,
        tasks: Sequence[SearchTask],
        *,
        programmer: Programmer,
        evaluator: Evaluator,
        sink: EventSink,
        clock: Clock,
        target: Target,
        pace: Pace,
        limits: Limits | None = None,
        verdicts: SharedVerdicts | None = None,
        spent: Spent | None = None,
        terms: Terms | None = None,
        profiling: Profiling | None = None,
        remembering: Remembering | None = None,
        stop: StopRule | None = None,
        table: Table | None = None,
        staff: Staffed | None = None,
    ) -> None:
        """Take the fleet over.

        Args:
            tasks: in the order of their start; those of a resumed run with `unfinished` filled.
            programmer: writes candidates for every task.
            evaluator: judges them.
            sink: where every event goes before it takes effect elsewhere.
            clock: for limits.
            target: what candidates are written for.
            pace: bounds on what is under way.
            limits: bounds on what is spent; None for none.
            verdicts: known from an earlier part of the run; None for none.
            spent: by an earlier part of the run; None for nothing.
            terms: what programmers are told of how candidates are judged; None for the defaults.
            profiling: who profiles, and by which rule; None for nobody.
            remembering: what authors are reminded of; None for nothing.
            stop: ends one search early; None for no such rule.
            table: shared with the other jobs of a fleet; None where there are none.
            staff: the programmer's roles, which call through the run's desk; None for one author.
        """
        self._tasks = list(tasks)
        self._sink = sink
        self._clock = clock
        self._pace = pace
        self._limits = limits or Limits()
        self._stop = stop or StopRule()
        self._spent = spent or Spent()
        self._spent.asked(sum(task.tree.told() + task.tree.pending() for task in self._tasks))
        table = table or Table(turns=Turns(places=pace.max_in_flight), arm="")
        self._bounded = table.spent
        self._spent.join(table.spent, table.turns.arm(table.arm).spent)
        self._began_s = table.began_s
        self._turns = table.turns
        profiling = profiling or Profiling()
        self._profiles = Profiles(
            profiling,
            sink=sink,
            clock=clock,
            target=target,
            spent=self._spent,
            is_capped=not pace.deterministic,
        )
        if staff is not None:
            staff.sit_at(AgentDesk(self._tasks, sink=sink))
        self._changed = asyncio.Event()
        self._seat = self._turns.sit(table.arm, priority=table.priority, on_turn=self._changed.set)
        self._memories = Memories(
            remembering or Remembering(),
            sink=sink,
            target=target,
            spent=self._spent,
            waits=pace.deterministic,
            on_change=self._changed.set,
        )
        self._life = ExpansionLife(
            programmer=programmer,
            evaluator=evaluator,
            sink=sink,
            target=target,
            terms=terms or Terms(),
            telling=profiling.rule.telling,
            verdicts=verdicts or SharedVerdicts(),
            profiles=self._profiles,
            memories=self._memories,
            in_slot_order=pace.deterministic,
            spent=self._spent,
            on_change=self._wake,
        )
        self._index = {task.spec.name: number for number, task in enumerate(self._tasks)}
        self._ready = list(range(len(self._tasks)))
        self._is_ready = set(self._ready)
        self._running: dict[asyncio.Task[None], SearchTask] = {}
        self._done: list[asyncio.Task[None]] = []
        """Those of them that ended and were not reaped: thousands may run."""
        self._plays = any(task.order is not None for task in self._tasks)

    @property
    def awaiting(self) -> int:
        """Expansions left open since their answers are awaited; a later sitting goes on."""
        return sum(task.awaiting for task in self._tasks)

    async def run(self) -> int:
        """Run every search to its end, or to where it waits for answers; return how many failed.

        Raises:
            StoreError: the journal cannot be written; the run can be resumed.
            asyncio.CancelledError: the caller gave up; what was in flight is left open in the
                journal, and the run can be resumed.
        """
        if self._began_s is None:
            self._began_s = self._clock.monotonic_s()
        try:
            await self._memories.catch_up(self._tasks)
            self._continue_unfinished()
            while True:
                self._fill()
                if not self._running and not self._seat.hungry:
                    break
                await self._changed.wait()
                self._changed.clear()
                self._memories.check()
                self._reap()
        finally:
            await self._abandon()
            self._turns.leave(self._seat)
            await self._memories.close()
            self._profiles.close()
        failed = sum(task.failed for task in self._tasks)
        if not self.awaiting:
            self._sink.append("", RunEnded(failed=failed))
        return failed

    def _continue_unfinished(self) -> None:
        for task in self._tasks:
            if task.extension is not None:
                self._sink.append(task.spec.name, task.extension)
            for unfinished in task.unfinished:
                self._launch(task, self._life.run(task, unfinished.expansion, unfinished))
            if self._profiles.owed(task):
                self._launch(task, self._profiles.catch_up(task))

    def _fill(self) -> None:
        """Ask until others' turn has come, or the limits or the trees say enough."""
        self._ask_what_is_due()
        while self._ready:
            number = self._ready[0]
            task = self._tasks[number]
            _heed_recorded_end(task)
            if self._end_if_over(task):
                self._park(number)
                continue
            if task.stop_reason is not None or not self._may_ask(task):
                self._park(number)
                continue
            if not _is_due(task) and not self._turns.wants(self._seat):
                return
            if not self._ask(task):
                if task.order is not None:
                    task.order.give_up()
                if not self._end_if_over(task):
                    self._drop_if_stuck(task)
                self._park(number)
        self._turns.passes(self._seat)

    def _ask_what_is_due(self) -> None:
        """Let searches that play a recording ask what all they have in flight is waiting for."""
        if not self._plays:
            return
        for task in [self._tasks[number] for number in sorted(self._is_ready)]:
            while _is_due(task):
                if task.stop_reason is not None or not self._ask(task):
                    assert task.order is not None
                    task.order.give_up()

    def _may_ask(self, task: SearchTask) -> bool:
        order = task.order
        if order is not None and (order.is_due or order.holds_asks):
            return order.is_due
        return self._pace.may_ask(task.in_flight + task.awaiting)

    def _ask(self, task: SearchTask) -> bool:
        assert self._began_s is not None
        reached = self._limits.reached(
            elapsed_s=self._clock.monotonic_s() - self._began_s, spent=self._bounded
        )
        if reached is None and task.order is None:  # a recording knows when it stopped
            reached = self._stop.reached(task.headway, num_candidates=task.num_candidates)
        if reached is not None:
            task.stop_reason = reached
            return False
        expansions = task.tree.ask(1)
        if not expansions:
            return False
        if not task.started:
            self._sink.append(task.spec.name, task.spec.started())
            task.started = True
            self._memories.begin(task)
        (expansion,) = expansions
        task.num_candidates = expansion.num_candidates
        self._spent.asked(expansion.num_candidates)
        self._sink.append(task.spec.name, asked_event(expansion))
        task.recollection.asked(expansion)
        if task.order is not None:
            task.order.took(Step(ExpansionAsked.kind, expansion.ordinal))
        self._launch(task, self._life.run(task, expansion, None))
        return True

    def _launch(self, task: SearchTask, work: Coroutine[Any, Any, None]) -> None:
        task.in_flight += 1
        self._turns.fill(self._seat)
        running = asyncio.create_task(work)
        self._running[running] = task
        running.add_done_callback(self._note_done)

    def _wake(self, task: SearchTask) -> None:
        """Something of this search was told, cancelled or ended: it may have more to ask."""
        number = self._index[task.spec.name]
        if not task.ended and number not in self._is_ready:
            self._is_ready.add(number)
            heapq.heappush(self._ready, number)
        self._changed.set()

    def _park(self, number: int) -> None:
        heapq.heappop(self._ready)
        self._is_ready.discard(number)

    def _note_done(self, running: asyncio.Task[None]) -> None:
        self._done.append(running)
        self._changed.set()

    def _reap(self) -> None:
        ended, self._done = self._done, []
        for done in ended:
            task = self._running.pop(done)
            task.in_flight -= 1
            self._turns.over(self._seat)
            self._wake(task)
            done.result()

    def _end_if_over(self, task: SearchTask) -> bool:
        """Close a search that has nothing in flight and nothing to ask; True if it is over."""
        if task.ended:
            return True
        if task.in_flight or task.awaiting:
            return False
        reason = task.stop_reason or task.tree.finished()
        if reason is None:
            return False
        if reason == "exhausted" and task.tree.told() == 0:
            reason = f"exhausted: {task.note}"  # it came to nothing, and this is why
        if not task.started:
            self._sink.append(task.spec.name, task.spec.started())
            task.started = True
        task.ended = True
        self._memories.ended(task)
        task.forget()
        self._sink.append(task.spec.name, SearchEnded(reason=reason, failed=task.failed))
        return True

    def _drop_if_stuck(self, task: SearchTask) -> None:
        """A tree that neither asks, waits nor ends breaks its contract: fail it, not the fleet."""
        if not (task.in_flight or task.awaiting) and task.stop_reason is None:
            task.stop_reason = "failed: the search asks for nothing and has nothing pending"
            task.failed = True
            self._end_if_over(task)
        elif task.stop_reason is not None:
            self._end_if_over(task)

    async def _abandon(self) -> None:
        for running in self._running:
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._running.clear()


def _heed_recorded_end(task: SearchTask) -> None:
    """Stop a search whose recording was ended here by a limit or a failure."""
    end = task.order.end if task.order is not None else None
    if end is not None and task.stop_reason is None:
        task.stop_reason, task.failed = end.reason, end.failed


def _is_due(task: SearchTask) -> bool:
    """Whether nothing in flight in this search is heard before it has asked again."""
    return task.order is not None and task.order.is_due and task.in_flight > 0
