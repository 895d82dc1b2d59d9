"""Memory in the driver: learned beside the search, journalled, recalled as of when it was asked."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.data.fold import RunState, fold
from kopt.data.memory_json import entries_from_json
from kopt.data.results import result_rows
from kopt.data.strategies import StrategyFile
from kopt.driver.limits import Spent
from kopt.driver.loop import Driver, Pace
from kopt.driver.memories import MAX_FAILURES, Remembering
from kopt.driver.profile_rule import ProfileRule
from kopt.driver.profiles import Profiling
from kopt.driver.replay import replay
from kopt.driver.task import SearchTask
from kopt.errors import ProgrammerUnavailable, StoreError
from kopt.events import CandidateMade, ExpansionAsked, MemoryUpdated, Told
from kopt.memory.entry import entry_of
from kopt.memory.experience import ExperienceRule
from kopt.memory.history import History
from kopt.memory.recall import Memory
from kopt.memory.rule import MemoryRule
from kopt.memory.tracker import Tally
from kopt.ports import (
    Answer,
    Completion,
    ExtractionAnswer,
    ExtractionRequest,
    Extractor,
    WriteRequest,
)
from kopt.search.config import MctsConfig
from kopt.testing.fake_extractor import InstantExtractor, SilentExtractor
from kopt.testing.fake_profiler import InstantProfiler
from kopt.testing.fakes import (
    InstantEvaluator,
    ManualClock,
    MemorySink,
    ScriptedProgrammer,
    fresh_candidates,
)
from kopt.testing.small_fleet import SMALL_TARGET, small_problem, small_tasks

MCTS = MctsConfig(iterations=10, candidates=2)
ALL = MemoryRule(search=True, history=True, experience=ExperienceRule(), guidelines=True)
SEARCH = MemoryRule(search=True)


def drive(
    tasks: list[SearchTask],
    sink: MemorySink,
    *,
    rule: MemoryRule = ALL,
    extractor: Extractor | None = None,
    strategies: StrategyFile | None = None,
    programmer: ScriptedProgrammer | None = None,
    lines: list[str] | None = None,
    deterministic: bool = True,
    spent: Spent | None = None,
    run: str = "run",
    profiling: Profiling | None = None,
) -> ScriptedProgrammer:
    programmer = programmer or ScriptedProgrammer()
    driver = Driver(
        tasks,
        programmer=programmer,
        evaluator=InstantEvaluator(),
        sink=sink,
        clock=ManualClock(),
        target=SMALL_TARGET,
        pace=Pace(max_in_flight=4, deterministic=deterministic),
        spent=spent,
        profiling=profiling,
        remembering=Remembering(
            rule=rule,
            extractor=extractor,
            strategies=strategies,
            run=run,
            warn=(lines if lines is not None else []).append,
        ),
    )
    assert asyncio.run(driver.run()) == 0
    return programmer


def updates(sink: MemorySink) -> list[MemoryUpdated]:
    return [body for body in sink.bodies("memory_updated") if isinstance(body, MemoryUpdated)]


def killed_at(whole: MemorySink, cut: int) -> tuple[MemorySink, RunState]:
    killed = MemorySink(records=whole.records[:cut])
    killed.texts = dict(whole.texts)
    return killed, fold(killed.records)


def recalls(programmer: ScriptedProgrammer) -> dict[int, tuple[Memory, History]]:
    return {
        request.expansion.ordinal: (request.memory, request.history)
        for request in programmer.requests
    }


def test_each_expansion_is_learned_from_once_and_the_next_prompts_are_told() -> None:
    sink = MemorySink()
    programmer = drive(small_tasks(MCTS), sink)
    learned = updates(sink)
    assert [update.expansion for update in learned] == list(range(10))
    assert {update.origin for update in learned} == {"rules"}
    so_far = 0
    for request in programmer.requests:
        assert len(request.memory.entries) == so_far
        assert request.memory.guidelines
        so_far += len(learned[request.expansion.ordinal].entries)
    assert so_far >= 10
    replay(fold(sink.records))


def test_a_prompt_is_told_what_stood_in_the_journal_when_it_was_asked() -> None:
    sink = MemorySink()
    programmer = drive(small_tasks(MCTS), sink, extractor=InstantExtractor(), deterministic=False)
    assert_told_by_the_journal(programmer, sink)
    assert len({len(request.memory.entries) for request in programmer.requests}) > 2


@pytest.mark.parametrize("cut", range(6, 80, 9))
def test_so_is_a_prompt_that_is_written_after_a_kill(cut: int) -> None:
    whole = MemorySink()
    drive(small_tasks(MCTS), whole, extractor=InstantExtractor(), deterministic=False)
    killed, state = killed_at(whole, cut)
    programmer = drive(
        small_tasks(MCTS, earlier=state), killed, extractor=InstantExtractor(), deterministic=False
    )
    assert_told_by_the_journal(programmer, killed)
    replay(fold(killed.records))


def assert_told_by_the_journal(programmer: ScriptedProgrammer, sink: MemorySink) -> None:
    updates, told = list[MemoryUpdated](), list[str]()
    at = dict[int, tuple[int, int]]()
    made = {(b.expansion, b.index): b for b in sink.bodies() if isinstance(b, CandidateMade)}
    for body in sink.bodies():
        if isinstance(body, ExpansionAsked):
            at[body.expansion] = len(updates), len(told)
        elif isinstance(body, MemoryUpdated):
            updates.append(body)
        elif isinstance(body, Told):
            told.append(made[body.expansion, body.index].candidate)
    for request in programmer.requests:
        num_updates, num_told = at[request.expansion.ordinal]
        expected = [e for update in updates[:num_updates] for e in update.entries]
        assert request.memory.entries == entries_from_json(expected)
        siblings = [each.candidate for each in request.history.siblings]
        assert request.history.earlier == 0
        assert siblings == [
            candidate for candidate in told[:num_told] if candidate in set(siblings)
        ]


def test_history_is_the_lineage_and_what_was_tried_from_the_same_place() -> None:
    sink = MemorySink()
    programmer = drive(small_tasks(MCTS), sink, rule=MemoryRule(history=True))
    deep = [r for r in programmer.requests if r.history.lineage]
    assert deep
    for request in programmer.requests:
        history = request.history
        siblings = history.earlier + len(history.siblings)
        assert siblings == request.expansion.first_child
        assert all(each.parent == request.expansion.parent for each in history.siblings)
        if request.parent is not None and history.lineage:
            assert history.lineage[-1].candidate == _first_parent(sink, request)
    assert all(request.memory == Memory() for request in programmer.requests)
    assert updates(sink) == []


def _first_parent(sink: MemorySink, request: WriteRequest) -> str | None:
    (search,) = fold(sink.records).searches.values()
    for expansion in search.expansions.values():
        for made in expansion.candidates.values():
            if made.candidate == request.expansion.parent:
                return expansion.asked.parent
    return None


def test_with_everything_off_requests_are_what_they_were_and_nothing_is_journalled() -> None:
    with_none, off = MemorySink(), MemorySink()
    programmer = drive(small_tasks(MCTS), off, rule=MemoryRule(), extractor=SilentExtractor())
    before = ScriptedProgrammer()
    driver = Driver(
        small_tasks(MCTS),
        programmer=before,
        evaluator=InstantEvaluator(),
        sink=with_none,
        clock=ManualClock(),
        target=SMALL_TARGET,
        pace=Pace(max_in_flight=4, deterministic=True),
    )
    asyncio.run(driver.run())
    assert programmer.requests == before.requests
    assert off.bodies() == with_none.bodies()


def test_a_model_that_never_answers_delays_no_ask() -> None:
    sink, extractor = MemorySink(), SilentExtractor()
    programmer = drive(small_tasks(MCTS), sink, extractor=extractor, deterministic=False)
    assert len(programmer.requests) == 10
    # Four are in flight: once the last is asked no prompt will read a lesson, and none is paid for.
    asked = {request.iteration.expansion for request in extractor.requests}
    assert asked == set(range(6))
    learned = updates(sink)
    # What it was still asked about when the search ended is kept by rule: the journal is whole.
    assert sorted(update.expansion or 0 for update in learned) == list(range(10))
    assert {update.origin for update in learned} == {"rules"}
    given_up = {u.expansion for u in learned if "search ended before" in u.fault}
    assert given_up == asked
    assert sink.records[-2].body.kind == "search_ended"
    replay(fold(sink.records))


def test_what_a_model_draws_costs_and_counts() -> None:
    sink, spent, extractor = MemorySink(), Spent(), InstantExtractor()
    drive(small_tasks(MCTS), sink, extractor=extractor, spent=spent)
    learned = updates(sink)
    # After the last expansion no prompt would read what a model draws: its lessons are by rule.
    assert [update.origin for update in learned] == ["model"] * 9 + ["rules"]
    assert [e["text"] for u in learned[:9] for e in u.entries] == [
        f"lesson of expansion {number}" for number in range(9)
    ]
    assert spent.tokens == 44 * 9
    (row,) = result_rows(fold(sink.records))
    assert row["cost_usd"] == 0.125 * 9
    known = [len(request.known) for request in extractor.requests]
    assert known == list(range(9))  # deterministic: each is over before the next is asked
    assert all(request.written for request in extractor.requests)


class Unreachable(InstantExtractor):
    """Cannot be asked."""

    async def extract(self, request: ExtractionRequest) -> ExtractionAnswer:
        self.requests.append(request)
        raise ProgrammerUnavailable("openai", "no\nroute")


def test_a_model_that_cannot_be_asked_costs_nothing_but_its_lessons() -> None:
    sink, plain, lines, extractor = MemorySink(), MemorySink(), list[str](), Unreachable()
    drive(small_tasks(MCTS), sink, extractor=extractor, lines=lines)
    drive(small_tasks(MCTS), plain)
    assert len(extractor.requests) == MAX_FAILURES
    faults = [update.fault for update in updates(sink)]
    assert faults == ["programmer openai cannot write: no route"] * 3 + [""] * 7
    assert [u.entries for u in updates(sink)] == [u.entries for u in updates(plain)]
    assert any("goes on with lessons by rule" in line for line in lines)
    assert any(f"{MAX_FAILURES} of {MAX_FAILURES} extractions" in line for line in lines)


def test_words_without_lessons_are_journalled_with_their_fault_and_the_rules_stand_in() -> None:
    class Unreadable(InstantExtractor):
        async def extract(self, request: ExtractionRequest) -> ExtractionAnswer:
            answer = await InstantExtractor.extract(self, request)
            said = Completion(text="hm", fault="no lessons: no JSON object")
            return replace(answer, entries=None, completion=said)

    sink, plain, lines = MemorySink(), MemorySink(), list[str]()
    drive(small_tasks(MCTS), sink, extractor=Unreadable(), lines=lines)
    drive(small_tasks(MCTS), plain)
    assert [(u.origin, u.fault) for u in updates(sink)] == [
        *[("rules", "no lessons: no JSON object")] * 9,
        ("rules", ""),
    ]
    assert [u.entries for u in updates(sink)] == [u.entries for u in updates(plain)]
    assert any("9 of 9 extractions" in line for line in lines)


@pytest.mark.parametrize("author", [None, InstantExtractor], ids=["rules", "model"])
@pytest.mark.parametrize("cut", range(4, 90, 5))
def test_a_run_that_was_killed_anywhere_recalls_what_it_would_have(cut: int, author) -> None:
    whole = MemorySink()
    before = drive(small_tasks(MCTS), whole, extractor=author and author())
    killed, state = killed_at(whole, min(cut, len(whole.records) - 1))
    after = drive(small_tasks(MCTS, earlier=state), killed, extractor=author and author())
    # What had been written before was not asked for again; the rest was told the same.
    assert recalls(after).items() <= recalls(before).items()
    assert sorted(map(repr, updates(killed))) == sorted(map(repr, updates(whole)))
    assert sorted(map(repr, killed.bodies("told"))) == sorted(map(repr, whole.bodies("told")))
    replay(fold(killed.records))


def test_a_run_killed_between_an_extraction_and_its_record_asks_for_it_again() -> None:
    whole = MemorySink()
    drive(small_tasks(MCTS), whole, extractor=InstantExtractor())
    first = next(n for n, r in enumerate(whole.records) if isinstance(r.body, MemoryUpdated))
    killed, state = killed_at(whole, first)  # the model had answered; nothing was kept
    again = InstantExtractor()
    drive(small_tasks(MCTS, earlier=state), killed, extractor=again)
    assert again.requests[0].iteration.expansion == 0
    assert [request.iteration.expansion for request in again.requests] == list(range(9))
    # And one killed just after has it, and asks no more.
    killed, state = killed_at(whole, first + 1)
    later = InstantExtractor()
    drive(small_tasks(MCTS, earlier=state), killed, extractor=later)
    assert [request.iteration.expansion for request in later.requests] == list(range(1, 9))


def test_a_journal_that_is_full_while_a_lesson_is_kept_stops_the_fleet() -> None:
    whole = MemorySink()
    drive(small_tasks(MCTS), whole, extractor=InstantExtractor())
    first = next(n for n, r in enumerate(whole.records) if isinstance(r.body, MemoryUpdated))
    for deterministic in (True, False):
        with pytest.raises(StoreError, match="no space"):
            drive(
                small_tasks(MCTS),
                MemorySink(capacity=first),
                extractor=InstantExtractor(),
                deterministic=deterministic,
            )


def test_an_answer_without_a_version_is_a_lesson_and_tool_calls_are_findings() -> None:
    def script(request: WriteRequest) -> Answer:
        if request.expansion.ordinal == 0:
            call = {
                "name": "read_source",
                "arguments": '{"path": "include/a.h"}',
                "result": "struct Atom",
            }
            return Answer(
                candidates=(),
                completions=(Completion(text="x", fault="no code block", tool_calls=(call,)),),
            )
        return fresh_candidates(request)

    sink = MemorySink()
    programmer = drive(small_tasks(MCTS), sink, programmer=ScriptedProgrammer(script))
    first = updates(sink)[0]
    assert first.expansion == 0
    assert entries_from_json(first.entries) == (
        entry_of("search_findings", "read_source(path=include/a.h): struct Atom"),
        entry_of("key_files", "include/a.h (read by read_source)"),
        entry_of("errors_corrections", "An answer held no candidate: no code block"),
    )
    assert programmer.requests[1].memory.entries == entries_from_json(first.entries)


def test_experience_and_its_signal_come_from_what_was_told() -> None:
    sink = MemorySink()
    profiling = Profiling(profiler=InstantProfiler(), rule=ProfileRule(when="expanded"))
    programmer = drive(
        small_tasks(MctsConfig(iterations=20)),
        sink,
        rule=MemoryRule(experience=ExperienceRule(capacity=3)),
        profiling=profiling,
    )
    last = programmer.requests[-1].memory.experience
    assert len(last) == 3
    assert all(
        each.gain is not None and (each.gain >= 1.05 or each.gain <= 1 / 1.2) for each in last
    )
    optimised = [each for each in last if each.parent_kind == "correct"]
    assert optimised
    assert {each.signal for each in optimised} == {"Uncoalesced global memory"}


def tracked(path: Path) -> StrategyFile:
    file = StrategyFile(path)
    tally = Tally(label="fusion", family="norm", bottleneck="", tried=4, succeeded=1)
    file.record("earlier", [tally])
    return file


def test_a_search_is_told_what_the_tracker_said_when_it_began_and_adds_to_it(tmp_path) -> None:
    file, sink = tracked(tmp_path / "strategies.json"), MemorySink()
    tasks = small_tasks(MCTS, problems=[replace(small_problem(), family="norm")])
    programmer = drive(tasks, sink, rule=MemoryRule(), strategies=file)
    (update,) = updates(sink)
    assert (update.expansion, update.origin) == (None, "tracker")
    for request in programmer.requests:
        (record,) = request.memory.strategies
        assert (record.label, record.advice, record.tried) == ("fusion", "AVOID", 4)
    added = [tally for tally in file.read() if tally.label != "fusion"]
    told = len([body for body in sink.bodies() if isinstance(body, Told)])
    assert sum(tally.tried for tally in added) == told
    assert {tally.family for tally in added} == {"norm"}


def test_a_resumed_search_is_told_what_it_was_and_counts_once(tmp_path) -> None:
    file, whole = tracked(tmp_path / "strategies.json"), MemorySink()
    problems = [replace(small_problem(), family="norm")]
    drive(small_tasks(MCTS, problems=problems), whole, strategies=file)
    once = file.read()
    # Killed after it had added to the tracker and before its end was journalled.
    killed, state = killed_at(whole, len(whole.records) - 2)
    file.record("another run", [Tally(label="x", family="y", bottleneck="", tried=1, succeeded=0)])
    drive(small_tasks(MCTS, problems=problems, earlier=state), killed, strategies=file)
    assert [tally for tally in file.read() if tally.label != "x"] == list(once)
    assert len([u for u in updates(killed) if u.expansion is None]) == 1
    # The same search of another run counts as well.
    drive(small_tasks(MCTS, problems=problems), MemorySink(), strategies=file, run="other")
    tried = sum(t.tried for t in file.read() if t.label not in ("x", "fusion"))
    assert tried == 2 * sum(t.tried for t in once if t.label != "fusion")


def test_a_tracker_that_breaks_is_named_once_and_the_searches_go_on(tmp_path) -> None:
    path = tmp_path / "strategies.json"
    path.write_text("[]")
    lines = list[str]()
    sink = MemorySink()
    drive(
        small_tasks(MCTS, seeds=(0, 1)),
        sink,
        rule=SEARCH,
        strategies=StrategyFile(path),
        lines=lines,
    )
    assert len(lines) == 1
    assert "expected a strategy tracker's file" in lines[0]
    assert path.read_text() == "[]"
    assert all(update.expansion is not None for update in updates(sink))
