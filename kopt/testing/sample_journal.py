"""Events for tests: one of every kind, and whole searches written as a driver writes them."""

from __future__ import annotations

from collections.abc import Sequence

from kopt.candidate import Candidate
from kopt.evaluation import to_json
from kopt.events import (
    AgentCalled,
    AnswerReceived,
    CandidateMade,
    DeviceQuarantined,
    EventBody,
    EvidenceTaken,
    ExpansionAsked,
    ExpansionCancelled,
    FindingsMade,
    MemoryUpdated,
    ProfileAnalysed,
    PromptSent,
    RunEnded,
    SearchEnded,
    SearchExtended,
    SearchStarted,
    Told,
    VerdictReached,
)
from kopt.identity import text_id
from kopt.ports import EventSink
from kopt.problem import Problem
from kopt.reward import RewardRule, reward
from kopt.testing.fakes import correct, evaluation_of, source_candidate
from kopt.verdict import Verdict

SAMPLE_PROBLEM = Problem(name="sample/sum", source="class Model: ...\n", family="norm")


def sample_events() -> list[EventBody]:
    """Return one event of every kind, in an order in which a driver may write them."""
    candidate = source_candidate("class ModelNew: ...\n", strategy="fuse 'é' \U0001f600\u2028")
    return [
        started(SAMPLE_PROBLEM, arm="mcts", seed=3),
        asked(0, num_candidates=2),
        PromptSent(
            expansion=0,
            messages=text_id("[]"),
            sampling={"temperature": 0.7, "stop": None, "seed": [1, 2]},
            tokens=812,
        ),
        AnswerReceived(
            expansion=0,
            index=0,
            candidates=1,
            answer=text_id("{}"),
            text=text_id("words"),
            tool_calls=[{"name": "read", "arguments": {"path": "a.h"}}],
            tokens_in=812,
            tokens_out=90,
            cost_usd=0.0125,
            exhausted=False,
            note="one of two",
            trace=text_id('{"token_ids": [7]}'),
        ),
        AgentCalled(
            expansion=0,
            agent="planner",
            slot=0,
            turn=1,
            messages=text_id("[]"),
            sampling={"temperature": 0.7},
            text=text_id("words"),
            finish="stop",
            tokens_in=600,
            tokens_out=30,
            cost_usd=0.004,
        ),
        made(candidate, expansion=0, index=0),
        reached(candidate, correct(2.5), problem=SAMPLE_PROBLEM, expansion=0, index=0),
        EvidenceTaken(
            candidate=candidate.candidate_id,
            expansion=0,
            index=0,
            ref=text_id("{}"),
            level="timeline",
            reason="",
            cached=False,
            profiled_s=1.5,
        ),
        FindingsMade(
            candidate=candidate.candidate_id,
            expansion=0,
            index=0,
            findings=[{"tool": "sync_points", "severity": "high", "observed": {"syncs": 2.0}}],
            left_out=1,
            remarks=[],
            energy_notes=[],
            silent=["occupancy"],
        ),
        ProfileAnalysed(
            candidate=candidate.candidate_id,
            expansion=0,
            index=0,
            messages=text_id("[]"),
            sampling={"temperature": 0.7},
            text=text_id("words"),
            analysis={"bottleneck": "latency", "severity": "high", "steps": ["fuse"]},
            fault="",
            tokens_in=900,
            tokens_out=40,
            cost_usd=0.01,
        ),
        Told(expansion=0, index=0, node=1, reward=0.916, energy_reduction=1.25),
        ExpansionCancelled(expansion=0, exhausted=True, reason="one of two"),
        MemoryUpdated(
            expansion=0,
            origin="model",
            entries=[{"heading": "learnings", "text": "rows are short: one warp a row"}],
            messages=text_id("[]"),
            sampling={"temperature": 0.7},
            text=text_id("words"),
            tokens_in=700,
            tokens_out=60,
            cost_usd=0.005,
        ),
        SearchEnded(reason="exhausted", failed=False),
        SearchExtended(
            policy_config={"search": {"kind": "best_of_n", "iterations": 40}, "reward": {}}
        ),
        SearchEnded(reason="exhausted", failed=False),
        DeviceQuarantined(
            device="GPU-1f", device_name="H200", host="node7", reason="3 memory error(s)"
        ),
        RunEnded(failed=0),
    ]


def started(problem: Problem, *, arm: str, seed: int) -> SearchStarted:
    """Return the event that opens a search of a problem."""
    return SearchStarted(
        problem=problem.problem_id,
        problem_name=problem.name,
        arm=arm,
        seed=seed,
        policy="best_of_n",
        policy_config={"search": {"kind": "best_of_n", "iterations": 30}, "reward": {}},
    )


def asked(expansion: int, *, num_candidates: int) -> ExpansionAsked:
    """Return the event of an expansion of ROOT."""
    return ExpansionAsked(
        expansion=expansion,
        parent_node=0,
        parent=None,
        mode="initial",
        n=num_candidates,
        first_child=expansion * num_candidates,
        seed=expansion,
    )


def made(candidate: Candidate, *, expansion: int, index: int) -> CandidateMade:
    """Return the event of a slot that was filled; its source is not put anywhere."""
    return CandidateMade(
        candidate=candidate.candidate_id,
        expansion=expansion,
        index=index,
        source=text_id(candidate.source),
        language=candidate.language,
        parent=candidate.parent,
        strategy=candidate.strategy,
        programmer=candidate.programmer,
    )


def reached(
    candidate: Candidate,
    verdict: Verdict,
    *,
    problem: Problem,
    expansion: int,
    index: int,
    cached: bool = False,
) -> VerdictReached:
    """Return the event of a candidate that was judged."""
    evaluation = evaluation_of(verdict, problem=problem, candidate=candidate)
    return VerdictReached(
        candidate=candidate.candidate_id,
        expansion=expansion,
        index=index,
        cached=cached,
        eval=to_json(evaluation),
    )


def write_search(
    sink: EventSink,
    *,
    problem: Problem = SAMPLE_PROBLEM,
    arm: str = "arm",
    seed: int = 0,
    expansions: Sequence[Sequence[tuple[Candidate, Verdict]]],
    end: SearchEnded | None = None,
) -> str:
    """Write a search in which every slot of every expansion was told, and return its name.

    Each answer counts 100 tokens in, 10 out and 0.5 USD.

    Args:
        sink: where to.
        problem: of the search.
        arm: of the search.
        seed: of the search.
        expansions: for each the candidate and verdict of each slot.
        end: its last event; None leaves it open.
    """
    name = f"{problem.name}/{arm}/{seed}"
    sink.append(name, started(problem, arm=arm, seed=seed))
    node = 0
    for ordinal, slots in enumerate(expansions):
        sink.append(name, asked(ordinal, num_candidates=len(slots)))
        sink.append(
            name,
            AnswerReceived(
                expansion=ordinal,
                index=0,
                candidates=len(slots),
                answer=sink.put_text("{}"),
                text=sink.put_text("words"),
                fault="" if ordinal else "no code block",
                tool_calls=[],
                tokens_in=100,
                tokens_out=10,
                cost_usd=0.5,
                exhausted=False,
                note="",
            ),
        )
        for index, (candidate, verdict) in enumerate(slots):
            node += 1
            sink.put_text(candidate.source)
            sink.append(name, made(candidate, expansion=ordinal, index=index))
            sink.append(
                name,
                reached(candidate, verdict, problem=problem, expansion=ordinal, index=index),
            )
            value = reward(verdict, RewardRule())
            sink.append(name, Told(expansion=ordinal, index=index, node=node, reward=value))
    if end is not None:
        sink.append(name, end)
    return name
