"""The fold: the state of each search, and journals that contradict themselves are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kopt.data.fold import evidence_cache, fold, verdict_cache
from kopt.data.record import Record
from kopt.errors import StoreError
from kopt.events import (
    AgentCalled,
    AnswerReceived,
    CandidateMade,
    EventBody,
    EvidenceTaken,
    ExpansionCancelled,
    FindingsMade,
    MemoryUpdated,
    ProfileAnalysed,
    PromptSent,
    RunEnded,
    SearchEnded,
    Told,
    VerdictReached,
)
from kopt.problem import Problem
from kopt.testing.fakes import ManualClock, MemorySink, correct, source_candidate
from kopt.testing.sample_journal import (
    SAMPLE_PROBLEM,
    asked,
    made,
    reached,
    sample_events,
    started,
    write_search,
)
from kopt.verdict import Crashed

A, B = source_candidate("a"), source_candidate("b")
START = started(SAMPLE_PROBLEM, arm="arm", seed=0)
ASKED = asked(0, num_candidates=2)
MADE = made(A, expansion=0, index=0)
VERDICT = reached(A, correct(2.0), problem=SAMPLE_PROBLEM, expansion=0, index=0)
TOLD = Told(expansion=0, index=0, node=1, reward=0.7)
CANCELLED = ExpansionCancelled(expansion=0, exhausted=False, reason="no programmer")
PROMPT = PromptSent(expansion=0, messages="0" * 64, sampling={}, tokens=1)
ANSWER = AnswerReceived(
    expansion=0,
    index=0,
    candidates=1,
    answer="0" * 64,
    text=None,
    tool_calls=[],
    tokens_in=0,
    tokens_out=0,
    cost_usd=0.0,
    exhausted=False,
    note="",
)


def records(bodies: Sequence[EventBody], *, search: str = "s") -> list[Record]:
    return [
        Record(seq=seq, time_ns=1_000 + seq, run="run", search=search, body=body)
        for seq, body in enumerate(bodies)
    ]


def test_a_search_is_folded_slot_by_slot() -> None:
    bodies = sample_events()
    state = fold(records(bodies))
    assert state.next_seq == len(bodies) == 18
    assert state.ended == RunEnded(failed=0)
    search = state.searches["s"]
    assert search.started == bodies[0]
    assert search.ended == SearchEnded(reason="exhausted", failed=False)
    # asked, told, cancelled, extended, in the order of the journal
    assert search.operations == [bodies[1], bodies[10], bodies[11], bodies[14]]
    assert (search.first_ns, search.last_ns) == (1_000, 1_015)  # the run's end is no search's
    expansion = search.expansions[0]
    assert (expansion.asked, expansion.prompt, expansion.answered) == tuple(bodies[1:4])
    assert expansion.calls == [bodies[4]]
    assert expansion.candidates == {0: bodies[5]}
    assert expansion.verdicts[0]["speedup"] == 2.5
    profile = search.profiles[bodies[5].candidate]
    assert [profile.evidence, profile.findings, profile.analysis] == bodies[7:10]
    assert expansion.told == {0: bodies[10]}
    assert expansion.cancelled == bodies[11]
    assert search.memory == [bodies[12]]
    assert not expansion.is_open
    assert state.quarantined == [bodies[16]]


def test_an_interrupted_expansion_is_open() -> None:
    state = fold(records([START, ASKED, PROMPT, ANSWER, MADE, VERDICT]))
    assert state.ended is None
    (expansion,) = state.searches["s"].open_expansions()
    assert expansion.asked == ASKED
    assert expansion.answered == ANSWER
    assert set(expansion.verdicts) == {0}
    assert set(expansion.told) == set()


def test_an_expansion_is_closed_once_all_slots_are_told() -> None:
    sink = MemorySink()
    write_search(sink, expansions=[[(A, correct(2.0)), (B, Crashed(stage="timing", log=""))]])
    state = fold(sink.records)
    assert state.searches["sample/sum/arm/0"].open_expansions() == []


def test_asking_after_an_end_opens_the_search_again() -> None:
    end = SearchEnded(reason="budget", failed=False)
    state = fold(records([START, ASKED, CANCELLED, end, asked(1, num_candidates=1)]))
    assert state.searches["s"].ended is None


def test_events_after_the_end_of_the_run_open_it_again() -> None:
    state = fold(records([START, RunEnded(failed=0), ASKED]))
    assert state.ended is None


def test_a_closed_node_is_a_cancel_after_every_slot_was_told() -> None:
    other = [
        made(B, expansion=0, index=1),
        reached(B, correct(1.5), problem=SAMPLE_PROBLEM, expansion=0, index=1),
        Told(expansion=0, index=1, node=2, reward=0.4),
    ]
    closed = ExpansionCancelled(expansion=0, exhausted=True, reason="nothing more")
    state = fold(records([START, ASKED, MADE, VERDICT, TOLD, *other, closed]))
    assert state.searches["s"].operations[-1] == closed


@pytest.mark.parametrize(
    ("bodies", "words"),
    [
        ([ASKED], "search 's' was not started"),
        ([START, START], "search 's' was started before"),
        ([START, MADE], "expansion 0 was not asked"),
        ([START, ASKED, ASKED], "expansion 0 was asked before"),
        ([START, ASKED, ANSWER, ANSWER], "answer 0 was received before"),
        ([START, ASKED, MADE, MADE], "slot 0 was filled before"),
        ([START, ASKED, made(A, expansion=0, index=2)], "slot 2 is not one of 2"),
        ([START, ASKED, VERDICT], "a verdict on slot 0, which has no candidate"),
        (
            [START, ASKED, made(B, expansion=0, index=0), VERDICT],
            "a verdict on another candidate than slot 0 holds",
        ),
        ([START, ASKED, MADE, VERDICT, VERDICT], "slot 0 had a verdict before"),
        ([START, ASKED, MADE, TOLD], "slot 0 was told without a verdict"),
        ([START, ASKED, MADE, VERDICT, TOLD, TOLD], "slot 0 was told before"),
        ([START, ASKED, MADE, VERDICT, CANCELLED, TOLD], "slot 0 was told after it was cancelled"),
        ([START, ASKED, CANCELLED, CANCELLED], "it was cancelled before"),
    ],
)
def test_a_contradiction_is_refused_and_named(bodies: list[EventBody], words: str) -> None:
    with pytest.raises(StoreError) as refused:
        fold(records(bodies))
    assert words in str(refused.value)
    assert f"seq {len(bodies) - 1}: " in str(refused.value)


def test_a_gap_in_the_sequence_is_refused() -> None:
    with pytest.raises(StoreError, match="expected seq 1, found 2"):
        fold([records([START])[0], *records([START, ASKED, ASKED])[2:]])


def test_a_candidate_of_a_problem_is_known_to_the_whole_fleet() -> None:
    other = Problem(name="other", source="class Model: pass")
    sink = MemorySink(clock=ManualClock())
    write_search(sink, seed=0, expansions=[[(A, correct(2.0))]])
    write_search(sink, seed=1, expansions=[[(A, correct(9.0))], [(B, correct(3.0))]])
    write_search(sink, problem=other, expansions=[[(A, correct(4.0))]])
    known = verdict_cache(fold(sink.records))
    assert {key: evaluation["speedup"] for key, evaluation in known.items()} == {
        (SAMPLE_PROBLEM.problem_id, A.candidate_id): 2.0,  # the first counts
        (SAMPLE_PROBLEM.problem_id, B.candidate_id): 3.0,
        (other.problem_id, A.candidate_id): 4.0,
    }


def test_a_call_of_an_agent_belongs_to_an_expansion_and_is_made_once() -> None:
    call = next(body for body in sample_events() if isinstance(body, AgentCalled))
    later = replace(call, turn=call.turn + 1)
    state = fold(records([START, ASKED, call, later]))
    assert state.searches["s"].expansions[0].calls == [call, later]
    with pytest.raises(StoreError, match="planner was asked for idea 0, turn 1 before"):
        fold(records([START, ASKED, call, call]))
    with pytest.raises(StoreError, match="expansion 0 was not asked"):
        fold(records([START, call]))


def test_a_call_about_a_whole_model_comes_before_any_search_and_is_made_once() -> None:
    call = next(body for body in sample_events() if isinstance(body, AgentCalled))
    of_model = replace(call, agent="strategist", turn=0, problem="p")
    state = fold(records([of_model, replace(of_model, problem="q")], search=""))
    assert [each.problem for each in state.calls] == ["p", "q"]
    assert state.searches == {}
    with pytest.raises(StoreError, match="strategist was asked of this model before"):
        fold(records([of_model, of_model], search=""))


def test_the_kinds_of_events_are_the_ones_tested_here() -> None:
    tested = (START, ASKED, PROMPT, ANSWER, MADE, VERDICT, TOLD, CANCELLED)
    assert isinstance(MADE, CandidateMade)
    assert isinstance(VERDICT, VerdictReached)
    assert {body.kind for body in sample_events()} == {
        *(body.kind for body in tested),
        *("agent_call", "evidence", "findings", "profile_analysis", "memory_updated"),
        "search_ended",
        "search_extended",
        "device_quarantined",
        "run_ended",
    }


def test_an_extension_opens_a_search_that_ended() -> None:
    ended = sample_events()[:14]
    assert fold(records(ended)).searches["s"].ended is not None
    assert fold(records(sample_events()[:15])).searches["s"].ended is None


def test_a_profile_belongs_to_a_slot_and_is_taken_once() -> None:
    evidence, findings, analysis = (
        next(body for body in sample_events() if isinstance(body, kind))
        for kind in (EvidenceTaken, FindingsMade, ProfileAnalysed)
    )
    before = sample_events()[:7]
    none = replace(evidence, ref=None, level=None, reason="no permission")
    for bodies, why in (
        ([evidence, evidence], "profiled before"),
        ([replace(evidence, candidate="other")], "another candidate"),
        ([replace(evidence, index=1)], "another candidate"),
        ([findings], "has no evidence"),
        ([none, findings], "has no evidence"),
        ([evidence, findings, findings], "had findings before"),
        ([evidence, analysis, analysis], "was analysed before"),
        ([replace(evidence, is_reference=True)] * 2, "the reference was profiled before"),
    ):
        with pytest.raises(StoreError, match=why):
            fold(records([*before, *bodies]))


def test_an_expansion_knows_how_far_the_memory_had_come_when_it_was_asked() -> None:
    learned = MemoryUpdated(expansion=0, origin="rules", entries=[])
    start = replace(learned, expansion=None, origin="tracker")
    second = asked(1, num_candidates=1)
    third = asked(2, num_candidates=1)
    state = fold(records([START, start, ASKED, second, learned, third]))
    search = state.searches["s"]
    assert [each.memory_known for each in search.expansions.values()] == [1, 1, 2]
    assert search.memory == [start, learned]


@pytest.mark.parametrize(
    ("bodies", "why"),
    [
        ([MemoryUpdated(expansion=7, origin="rules", entries=[])], "expansion 7 was not asked"),
        ([MemoryUpdated(expansion=0, origin="rules", entries=[])] * 2, "0 was remembered before"),
        (
            [MemoryUpdated(expansion=None, origin="tracker", entries=[])] * 2,
            "its beginning was remembered before",
        ),
    ],
)
def test_a_memory_grows_once_for_each_expansion(bodies: list[EventBody], why: str) -> None:
    with pytest.raises(StoreError, match=why):
        fold(records([START, ASKED, *bodies]))


def test_evidence_of_a_run_is_known_by_problem_and_candidate() -> None:
    events = sample_events()
    evidence = next(body for body in events if isinstance(body, EvidenceTaken))
    reference = replace(evidence, candidate="r" * 64, is_reference=True)
    state = fold(records([*events[:8], reference]))
    problem = SAMPLE_PROBLEM.problem_id
    assert evidence_cache(state) == {
        (problem, evidence.candidate): evidence,
        (problem, reference.candidate): reference,
    }
