"""A run that a model was asked in, with everything in it that a corpus has to cope with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kopt.candidate import Candidate
from kopt.data.journal import Journal
from kopt.data.manifest import make_manifest
from kopt.data.rundir import RunDir
from kopt.events import (
    AnswerReceived,
    EvidenceTaken,
    ExpansionAsked,
    ExpansionCancelled,
    FindingsMade,
    PromptSent,
    RunEnded,
    SearchEnded,
    Told,
)
from kopt.identity import canonical_json
from kopt.ports import EventSink
from kopt.problem import Problem
from kopt.reward import RewardRule, reward
from kopt.testing.fakes import ManualClock, correct, source_candidate
from kopt.testing.sample_journal import made, reached, started
from kopt.verdict import Cheated, Incorrect, Verdict

SECRETS = (
    "sk-proj-abcdefghijklmnop1234",
    "hf_abcdefghijklmnopqrstuv",
    "/home/mallory/project/kernel.py",
    "mallory",
    "gpu-node-17",
    "hunter2hunter2",
)
"""Planted in texts of the run; none may come out of it."""
NORM = Problem(name="set/norm", source="class Model:\n    a = 1\n", family="norm", licence="MIT")
CONV = Problem(name="set/conv", source="class Model:\n    b = 2\n", family="conv")


def module(number: int) -> str:
    """A candidate's text; those of different numbers are not alike."""
    lines = [f"    v{number}_{line} = load_{number * 31 + line * 7}({line})" for line in range(30)]
    return "class ModelNew:\n" + "\n".join(lines) + "\n"


class Scribe:
    """Writes a search as a driver does."""

    def __init__(self, sink: EventSink, problem: Problem, *, arm: str = "arm") -> None:
        self.sink = sink
        self.problem = problem
        self.name = f"{problem.name}/{arm}/0"
        self.ordinal = self.node = 0
        sink.append(self.name, started(problem, arm=arm, seed=0))

    def expand(
        self,
        answers: list[tuple[str, Candidate | None, Verdict | None]],
        *,
        parent: tuple[int, str] | None = None,
        prompt: str = "write it",
        trace: bool = False,
    ) -> list[tuple[int, str]]:
        """An expansion with an answer each; (node, candidate) of those that were told."""
        ordinal, self.ordinal = self.ordinal, self.ordinal + 1
        node, candidate_id = parent or (0, None)
        made_of = [(words, one, verdict) for words, one, verdict in answers if one is not None]
        self.sink.append(
            self.name,
            ExpansionAsked(
                expansion=ordinal,
                parent_node=node,
                parent=candidate_id,
                mode="optimize" if parent else "initial",
                n=len(answers),
                first_child=0,
                seed=ordinal,
            ),
        )
        messages = [["system", "You write kernels."], ["user", f"{self.problem.name}: {prompt}"]]
        kept = self.sink.put_text(canonical_json(messages))
        sampling = {"model": "m", "temperature": 0.7}
        self.sink.append(
            self.name,
            PromptSent(expansion=ordinal, messages=kept, sampling=sampling, tokens=50),
        )
        for index, (words, one, _) in enumerate(answers):
            tokens = canonical_json({"prompt_token_ids": [1], "token_ids": [7], "logprobs": [-0.5]})
            self.sink.append(
                self.name,
                AnswerReceived(
                    expansion=ordinal,
                    index=index,
                    candidates=len(made_of),
                    answer=self.sink.put_text("{}"),
                    text=self.sink.put_text(words) if words else None,
                    fault="" if one else "no ModelNew: 10 code blocks, and none defines it",
                    tool_calls=[],
                    tokens_in=0 if index else 50,
                    tokens_out=10,
                    cost_usd=0.25,
                    exhausted=False,
                    note="",
                    trace=self.sink.put_text(tokens) if trace else None,
                    reasoning=self.sink.put_text("it reads twice") if trace else None,
                ),
            )
        told = []
        for slot, (_, one, verdict) in enumerate(made_of):
            assert one is not None
            self.sink.put_text(one.source)
            self.sink.append(self.name, made(one, expansion=ordinal, index=slot))
            if verdict is None:
                continue
            event = reached(one, verdict, problem=self.problem, expansion=ordinal, index=slot)
            self.sink.append(self.name, event)
            self.node += 1
            value = reward(verdict, RewardRule())
            self.sink.append(
                self.name, Told(expansion=ordinal, index=slot, node=self.node, reward=value)
            )
            told.append((self.node, one.candidate_id))
        return told

    def profile(self, candidate: str, *, tools: list[str]) -> None:
        """Findings of a candidate that was told in the first expansion."""
        evidence = EvidenceTaken(
            candidate=candidate,
            expansion=0,
            index=0,
            ref=None,
            level="timeline",
            reason="",
            cached=False,
            profiled_s=1.5,
        )
        self.sink.append(self.name, evidence)
        found = [{"tool": tool, "severity": "high", "title": f"bad {tool}"} for tool in tools]
        findings = FindingsMade(
            candidate=candidate,
            expansion=0,
            index=0,
            findings=found,
            left_out=0,
            remarks=[],
            energy_notes=[],
            silent=[],
        )
        self.sink.append(self.name, findings)

    def give_up(self) -> None:
        """An expansion that nobody answered."""
        ordinal, self.ordinal = self.ordinal, self.ordinal + 1
        self.sink.append(
            self.name,
            ExpansionAsked(
                expansion=ordinal,
                parent_node=0,
                parent=None,
                mode="initial",
                n=2,
                first_child=0,
                seed=0,
            ),
        )
        event = ExpansionCancelled(expansion=ordinal, exhausted=False, reason="endpoint down")
        self.sink.append(self.name, event)

    def end(self) -> None:
        """The end of the search."""
        self.sink.append(self.name, SearchEnded(reason="budget", failed=False))


def write_norm(sink: EventSink) -> None:
    """Four answers, one without a candidate; then two from the right one, and one given up."""
    scribe = Scribe(sink, NORM)
    one, two, three = (source_candidate(module(n), strategy="fusion") for n in (1, 2, 3))
    wrong = Incorrect(check="values", detail=f"raised in {SECRETS[2]} on {SECRETS[4]}")
    first, *_ = scribe.expand(
        [
            ("one", one, correct(2.0)),
            (f"two by {SECRETS[3]}", two, wrong),
            ("ten code blocks", None, None),
            ("three", three, Cheated(check="two_clocks", detail="they disagree")),
        ]
    )
    scribe.profile(first[1], tools=["coalescing", "occupancy"])
    key = f"key {SECRETS[0]} and {SECRETS[1]}, password = '{SECRETS[5]}'"
    four = source_candidate(module(4) + f"# {key}\n", parent=first[1], strategy="vectorise")
    five = source_candidate(module(5), parent=first[1], strategy="vectorise")
    scribe.expand(
        [("four", four, correct(4.0)), ("five", five, correct(2.1))],
        parent=first,
        prompt=f"faster than {SECRETS[2]}",
        trace=True,
    )
    scribe.give_up()
    scribe.end()


def write_conv(sink: EventSink, *, ends: bool = True) -> None:
    """One right answer to another family's problem."""
    scribe = Scribe(sink, CONV)
    scribe.expand([("six", source_candidate(module(6), strategy="tiling"), correct(1.5))])
    if ends:
        scribe.end()


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., RunDir]:
    """Makes a run folder of searches, each a function that writes its events."""

    def make(
        *searches: Callable[[EventSink], None], name: str = "mine", ends: bool = True, **more: Any
    ) -> RunDir:
        run = RunDir(tmp_path / name)
        run.path.mkdir()
        manifest = make_manifest(
            {"out": "/home/mallory/runs", "cluster": {"address": "ray://gpu-node-17:10001"}},
            name=name,
            created_ns=0,
            argv=["/home/mallory/venv/bin/kopt", "run"],
            device={"kind": "cpu", "name": "a CPU", "arch": "x86_64", "languages": ["cpp"]},
        )
        run.write_manifest(manifest)
        for problem in (NORM, CONV):
            run.keep_problem(problem)
        with Journal(run.path, run=name, clock=ManualClock(), **more) as sink:
            for each in searches or (write_norm, write_conv):
                each(sink)
            if ends:
                sink.append("", RunEnded(failed=0))
        return run

    return make
