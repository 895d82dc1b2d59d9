"""A recording: an earlier run's answers and verdicts, found again by what was asked.

Only an index is held: the journal's events without their evaluations (with `verdicts`, each
evaluation once, as JSON text). Answers are read from the artefacts when they are asked for. The
run folder is never written to; a run that is still going on is seen as it was at the opening.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import cast

from kopt.agent_call import AgentCall, AgentReply
from kopt.data.answers import answer_from_text
from kopt.data.fold import ExpansionState, RunState, SearchState, apply, evidence_cache
from kopt.data.journal_files import JOURNAL_FOLDER, read_events
from kopt.data.record import Record
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError, ProblemError, ProgrammerUnavailable, StoreError, WorkerLost
from kopt.evaluation import EvalJson, Evaluation, from_json
from kopt.events import AgentCalled, EvidenceTaken, MemoryUpdated, VerdictReached
from kopt.identity import canonical_json
from kopt.ports import Answer, Completion, Usage
from kopt.problem import Problem

MAX_NAMED = 6
"""Names that an error text lists; the rest are counted."""

_LEFT_OUT = cast("EvalJson", {})
"""Stands for an evaluation in the index."""

Key = tuple[str, str]
"""(problem id, candidate id)."""


class NotRecorded(LookupError):
    """The recording does not have what is asked for; its text is one line that says what it has."""


class RecordedSetback(ProgrammerUnavailable):
    """The recording's programmer could not write here; the text is what was said then."""

    def __str__(self) -> str:
        return self.why


class RecordedLoss(WorkerLost):
    """The recording lost the worker that judged this; the text is what was said then."""

    def __str__(self) -> str:
        return self.why


class RecordedFault(ProblemError):
    """What ended the recording's search here; the text is what was said then."""

    def __str__(self) -> str:
        return self.why


class Recording:
    """What an earlier run asked, was answered and found. Read-only."""

    def __init__(self, run: RunDir, state: RunState, evaluations: dict[Key, str]) -> None:
        """Take what `open` read."""
        self.run = run
        self._searches = {_key(search): search for search in state.searches.values()}
        self._calls = state.calls
        self._evaluations = evaluations
        self._lost = dict(_losses(state))
        self._evidence = evidence_cache(state)

    @classmethod
    def open(cls, path: str, *, verdicts: bool) -> Recording:
        """Read the journal of a run folder, its sealed parts and its open file.

        Args:
            path: of the folder.
            verdicts: whether evaluations are kept too.

        Raises:
            ConfigError: it is not a run folder, or a run that never began.
            StoreError: its journal is damaged.
        """
        run = RunDir.open(path)
        state, evaluations = RunState(), dict[Key, str]()
        if (run.path / JOURNAL_FOLDER).is_dir():
            _index(read_events(run.path), state, evaluations if verdicts else None)
        if not state.searches:
            raise ConfigError(f"{path}: expected a run with answers in it, found no search")
        return cls(run, state, evaluations)

    def arm(self, named: str | None, *, own: str) -> str:
        """Return the arm to play: the one named, or the one called as ours is, or the only one.

        Raises:
            ConfigError: there is no such arm, or there are several to choose from.
        """
        arms = sorted({arm for _, arm, _ in self._searches})
        if named is not None and named not in arms:
            raise ConfigError(f"programmer.arm={named}: {self.run.path} has {listed(arms)}")
        if named is None and own not in arms and len(arms) > 1:
            raise ConfigError(
                f"programmer.run={self.run.path}: it has the arms {listed(arms)}; "
                "choose one with programmer.arm="
            )
        return named or (own if own in arms else arms[0])

    def search(self, problem: Problem, *, arm: str, seed: int) -> SearchState:
        """Return what is known of one search, without its evaluations.

        Raises:
            NotRecorded: there is none of that problem, arm and seed.
        """
        found = self._searches.get((problem.problem_id, arm, seed))
        if found is not None:
            return found
        of_problem = {key: s for key, s in self._searches.items() if key[0] == problem.problem_id}
        where = f"{self.run.path} has no answers for {problem.name}, arm {arm}, seed {seed}"
        if not of_problem:
            names = sorted({search.started.problem_name for search in self._searches.values()})
            if problem.name in names:
                raise NotRecorded(f"{where}: its {problem.name} has another source or dtype")
            raise NotRecorded(f"{where}: its problems are {listed(names)}")
        seeds = sorted({key[2] for key in of_problem if key[1] == arm})
        if not seeds:
            arms = sorted({key[1] for key in of_problem})
            raise NotRecorded(f"{where}: that problem has the arms {listed(arms)} there")
        raise NotRecorded(f"{where}: it has the seeds {listed(map(str, seeds))}")

    def expansion(self, search: SearchState, ordinal: int) -> ExpansionState:
        """Return one expansion of a search.

        Raises:
            NotRecorded: the search never asked for that many.
        """
        found = search.expansions.get(ordinal)
        if found is None:
            known = f"expansions 0 to {max(search.expansions)}" if search.expansions else "none"
            raise NotRecorded(f"{self._place(search)} has no expansion {ordinal}: it has {known}")
        return found

    def answer(self, search: SearchState, expansion: ExpansionState) -> Answer:
        """Return what was answered, whole.

        Raises:
            NotRecorded: no answer was journalled before the run stopped.
            RecordedSetback: none came: the expansion was cancelled.
            RecordedFault: none came, and the search ended by it.
            StoreError: the answer's artefact is missing or damaged.
        """
        answered = expansion.answered
        if answered is not None:
            return answer_from_text(self.run.artefacts.get(answered.answer))
        if expansion.cancelled is None:
            raise NotRecorded(
                f"{self._place(search)} was interrupted before expansion "
                f"{expansion.asked.expansion} was answered"
            )
        reason = expansion.cancelled.reason
        if _ended_by(search, reason):
            raise RecordedFault(search.started.problem_name, reason)
        raise RecordedSetback("recorded", reason)

    def call(self, search: SearchState, call: AgentCall) -> AgentReply:
        """Return what was said to an agent at the same place.

        Raises:
            NotRecorded: nothing was, or the run stopped before.
            RecordedSetback: none came: the expansion was cancelled.
            RecordedFault: none came, and the search ended by it.
            StoreError: an artefact is missing or damaged.
        """
        place = call.place
        if place.agent == "summarizer":
            return self._lesson(search, place.expansion)
        expansion = self.expansion(search, place.expansion)
        for said in expansion.calls:
            if (said.agent, said.slot, said.turn) == place[1:]:
                return self._reply(said)
        if expansion.answered is None:
            self.answer(search, expansion)  # raises what ended it
        made = len(expansion.calls)
        raise NotRecorded(
            f"{self._place(search)}, expansion {place.expansion}: it has {made} calls of agents, "
            f"and none at {call.turn_name}"
        )

    def model_call(self, call: AgentCall) -> AgentReply:
        """Return what was said to an agent of a compiled model as a whole.

        Raises:
            NotRecorded: nothing was.
            StoreError: an artefact is missing or damaged.
        """
        place = call.problem.problem_id, call.place.agent, call.place.turn
        for said in self._calls:
            if (said.problem, said.agent, said.turn) == place:
                return self._reply(said)
        raise NotRecorded(
            f"{self.run.path}: no {call.place.agent} was asked of {call.problem.name} there"
        )

    def _reply(self, said: AgentCalled) -> AgentReply:
        get = self.run.artefacts.get
        completion = Completion(
            text=get(said.text) if said.text else "",
            finish=said.finish,
            fault=said.fault,
            reasoning=get(said.reasoning) if said.reasoning else "",
            usage=_usage(said),
        )
        return AgentReply(completion=completion, sampling=said.sampling)

    def _lesson(self, search: SearchState, ordinal: int) -> AgentReply:
        """Return what a summarizer said of an expansion."""
        for update in search.memory:
            if update.expansion == ordinal and update.text is not None:
                completion = Completion(
                    text=self.run.artefacts.get(update.text),
                    fault="",
                    usage=_usage(update),
                )
                return AgentReply(completion=completion, sampling=update.sampling or {})
        raise RecordedSetback("recorded", f"nothing was learned by a model of expansion {ordinal}")

    def evaluation(self, problem_id: str, candidate_id: str) -> Evaluation | None:
        """Return the first evaluation of a candidate; None where none is kept.

        Raises:
            StoreError: it is of another schema.
        """
        text = self._evaluations.get((problem_id, candidate_id))
        if text is None:
            return None
        try:
            return from_json(json.loads(text))
        except ValueError as error:
            raise StoreError(str(self.run.path), str(error)) from error

    def evidence(self, problem_id: str, candidate_id: str) -> EvidenceTaken | None:
        """Return how a candidate was profiled first; None where it was not."""
        return self._evidence.get((problem_id, candidate_id))

    def loss(self, problem_id: str, candidate_id: str) -> RecordedLoss | RecordedFault | None:
        """Return why a candidate was given up before it had a verdict; None if it was not."""
        ending = self._lost.get((problem_id, candidate_id))
        if ending is None:
            return None
        reason, ended_search = ending
        if ended_search is not None:
            return RecordedFault(ended_search, reason)
        return RecordedLoss("recorded", reason)

    def _place(self, search: SearchState) -> str:
        started = search.started
        return f"{self.run.path}: {started.problem_name}, arm {started.arm}, seed {started.seed}"


def _usage(paid: AgentCalled | MemoryUpdated) -> Usage:
    return Usage(tokens_in=paid.tokens_in, tokens_out=paid.tokens_out, cost_usd=paid.cost_usd)


def listed(names: Iterable[str]) -> str:
    """Return names in a line, the first few of many."""
    known = list(names)
    more = f" and {len(known) - MAX_NAMED} more" if len(known) > MAX_NAMED else ""
    return ", ".join(known[:MAX_NAMED]) + more


def _index(records: Iterable[Record], state: RunState, evaluations: dict[Key, str] | None) -> None:
    for record in records:
        body = record.body
        if isinstance(body, VerdictReached):
            if evaluations is not None:
                key = body.eval["problem"], body.candidate
                if key not in evaluations:
                    evaluations[key] = canonical_json(body.eval)
            record = replace(record, body=replace(body, eval=_LEFT_OUT))
        apply(state, record)


def _key(search: SearchState) -> tuple[str, str, int]:
    return search.started.problem, search.started.arm, search.started.seed


def _losses(state: RunState) -> Iterator[tuple[Key, tuple[str, str | None]]]:
    """Candidates that were made, given up, and had a verdict nowhere in the run.

    With the reason, and the name of the problem whose search it ended, if it did.
    """
    judged = {key for search in state.searches.values() for key in _judged(search)}
    for search in state.searches.values():
        for expansion in search.expansions.values():
            if expansion.cancelled is None:
                continue
            reason = expansion.cancelled.reason
            for index, made in expansion.candidates.items():
                key = search.started.problem, made.candidate
                if index in expansion.told or key in judged:
                    continue
                ended = _ended_by(search, reason)
                yield key, (reason, search.started.problem_name if ended else None)


def _judged(search: SearchState) -> Iterator[Key]:
    for expansion in search.expansions.values():
        for index, made in expansion.candidates.items():
            if index in expansion.verdicts:
                yield search.started.problem, made.candidate


def _ended_by(search: SearchState, reason: str) -> bool:
    """Whether this is what the search ended by."""
    return search.ended is not None and search.ended.reason == f"failed: {reason}"
