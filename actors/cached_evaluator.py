"""An Evaluator that asks before it judges: in this run, then in the cache, then of another driver.

A candidate whose text differs from a judged one in layout alone is not judged again in a run,
whatever `evaluate.cache` says. Between runs, verdicts lie in the store `verdict`, where
`evaluate.cache` allows it. Of several requests for one key one judges and the others wait: within
this driver without limit, for another driver as long as a candidate may take, then they judge.

Whatever is wrong with the cache is said once, in one line, and the candidate is judged: a cache
that cannot be used costs time, never a verdict.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from kopt.actors.cache.facts import Facts, keeps_out
from kopt.actors.cache.locks import Claim
from kopt.actors.cache.store import Store
from kopt.actors.cache.verdict_key import (
    Found,
    from_value,
    handed_on,
    may_keep,
    protocol_key,
    text_key,
    to_value,
    verdict_key,
)
from kopt.actors.config import EvaluateConfig
from kopt.actors.recorded_verdicts import JudgingEvaluator
from kopt.candidate import Candidate
from kopt.evaluation import Evaluation
from kopt.ports import Target
from kopt.problem import Problem
from kopt.survey import Survey

_LOG = logging.getLogger(__name__)
POLL_S = 0.5
"""Between two looks at what another driver is judging."""
MAX_CLAIMS = 256
"""Held at once, a file each: what is beyond them may be judged by two drivers at once."""


class CachedEvaluator:
    """Gives verdicts that are known, and has the rest judged."""

    def __init__(
        self,
        inner: JudgingEvaluator,
        *,
        config: EvaluateConfig,
        store: Store,
        facts: Callable[[str], Awaitable[list[Facts]]],
        wait_s: float | None = None,
    ) -> None:
        """Wrap an evaluator.

        Args:
            inner: judges what is not known.
            config: how it judges; its `cache` says what the store is used for.
            store: of verdicts.
            facts: called once with the device's kind; gives the facts of the hosts that judge
                (see `judging_facts`), or raises OSError.
            wait_s: for another driver that judges the same; None for as long as its stages may
                take.
        """
        self._inner = inner
        self._config = config
        self._store = store
        self._ask_facts = facts
        self._wait_s = _longest_s(config) if wait_s is None else wait_s
        self._known: dict[str, Evaluation] = {}
        self._under_way: dict[str, asyncio.Future[None]] = {}
        self._protocol: asyncio.Task[str | None] | None = None
        self._claims = 0
        self._faults: set[str] = set()

    async def target(self) -> Target:
        """Return the device that verdicts are for."""
        return await self._inner.target()

    async def survey(self, problem: Problem) -> Survey:
        """Say what a problem is in numbers (the Surveyor port), as the inner evaluator does."""
        return await self._inner.survey(problem)

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        """Give a verdict that is known, or judge (the Evaluator port).

        Raises:
            ProblemError, WorkerLost: as the inner evaluator. Whoever waited judges for himself.
        """
        asked_s = time.monotonic()
        text = text_key(problem, candidate)
        while True:
            known = self._known.get(text)
            if known is not None:
                waited_s = time.monotonic() - asked_s
                return handed_on(
                    known, candidate=candidate, judged_when="in this run", waited_s=waited_s
                )
            under_way = self._under_way.get(text)
            if under_way is None:
                break
            await asyncio.wait([under_way])
        under_way = asyncio.get_running_loop().create_future()
        self._under_way[text] = under_way
        try:
            evaluation = await self._find(problem, candidate, text=text, asked_s=asked_s)
            self._known[text] = evaluation
            return evaluation
        finally:
            del self._under_way[text]
            under_way.cancel()

    async def _find(
        self, problem: Problem, candidate: Candidate, *, text: str, asked_s: float
    ) -> Evaluation:
        """Look in the store, wait for another driver, or judge."""
        protocol = None
        if self._config.cache != "off":
            protocol = await self._named_protocol()
        if protocol is None:
            return await self._inner.evaluate(problem, candidate)
        key = verdict_key(text, protocol=protocol)
        found = await self._read(key)
        claim = None
        if found is None and self._config.cache == "on":
            claim, found = await self._claimed(key)
        if found is not None:
            return handed_on(
                found.evaluation,
                candidate=candidate,
                judged_when=_time_of_day(found.made_s),
                waited_s=time.monotonic() - asked_s,
            )
        try:
            waited_s = time.monotonic() - asked_s
            evaluation = await self._inner.evaluate(problem, candidate)
            if self._config.cache == "on" and may_keep(evaluation):
                await self._write(key, evaluation)
        finally:
            self._release(claim)
        timeline_s = {"queued": 0.0, **evaluation.timeline_s}
        timeline_s["queued"] += waited_s
        return replace(evaluation, timeline_s=timeline_s)

    async def _named_protocol(self) -> str | None:
        """Return the key of how this run judges; None where the store is of no use."""
        if self._protocol is None:
            self._protocol = asyncio.create_task(self._name_protocol())
        return await asyncio.shield(self._protocol)

    async def _name_protocol(self) -> str | None:
        target = await self._inner.target()
        try:
            facts = await self._ask_facts(target.device)
        except OSError as error:
            self._say("facts", f"verdicts are not cached: {error}")
            return None
        if not all(keeps_out(each) for each in facts):
            self._say(
                "guards",
                "verdicts are not cached: nothing here keeps candidates from writing to the cache "
                "(`kopt doctor` says which levels of the sandbox are off, and why)",
            )
            return None
        return protocol_key(self._config, target=target, facts=facts)

    async def _read(self, key: str) -> Found | None:
        value = await asyncio.to_thread(self._store.get, key)
        if value is None:
            return None
        try:
            return from_value(value)
        except (ValueError, KeyError, TypeError) as error:
            self._say("value", f"a cached verdict cannot be read and is not used: {error!r}")
            return None

    async def _claimed(self, key: str) -> tuple[Claim | None, Found | None]:
        """Return the claim on a key, or what another driver found meanwhile, or neither."""
        if self._claims >= MAX_CLAIMS:
            return None, None
        give_up_s = time.monotonic() + self._wait_s
        while True:
            try:
                claim = self._store.claim(key)
            except BlockingIOError:
                if time.monotonic() >= give_up_s:
                    return None, None
            except OSError as error:
                self._say_unwritable(error)
                return None, None
            else:
                self._claims += 1
                # Whoever had it before us may have written while we looked away.
                found = await self._read(key)
                if found is not None:
                    self._release(claim)
                    return None, found
                return claim, None
            await asyncio.sleep(POLL_S)
            found = await self._read(key)
            if found is not None:
                return None, found

    def _release(self, claim: Claim | None) -> None:
        if claim is not None:
            self._claims -= 1
            with suppress(OSError):
                claim.release()

    async def _write(self, key: str, evaluation: Evaluation) -> None:
        value = to_value(evaluation, made_s=time.time())
        try:
            await asyncio.to_thread(self._store.put, key, value)
        except OSError as error:
            self._say_unwritable(error)

    def _say_unwritable(self, error: OSError) -> None:
        why = error.strerror or str(error)
        self._say("write", f"verdicts are not kept in {self._store.root}: {why}")

    def _say(self, fault: str, line: str) -> None:
        """Say what is wrong, once for each kind of fault, and go on without."""
        if fault not in self._faults:
            self._faults.add(fault)
            _LOG.warning("%s", line)


def _longest_s(config: EvaluateConfig) -> float:
    """Return how long another driver's candidate may take, where it need not queue for long."""
    limits = config.timeouts
    return limits.build_s + limits.load_s + limits.correctness_s + limits.timing_s


def _time_of_day(made_s: float) -> str:
    return datetime.fromtimestamp(made_s, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
