"""The recorded programmer: the same tree again, and one clear line where it cannot be."""

from __future__ import annotations

import asyncio
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.actors.programmers.config import RecordedConfig
from kopt.actors.programmers.recorded import RecordedProgrammer
from kopt.actors.recorded_verdicts import RecordedEvaluator
from kopt.candidate import Candidate
from kopt.data.fold import RunState, fold
from kopt.data.journal import Journal, read_events
from kopt.data.recording import RecordedFault, RecordedLoss, RecordedSetback
from kopt.data.rundir import RunDir
from kopt.driver.limits import Limits
from kopt.driver.loop import Pace
from kopt.driver.order import RecordedOrder
from kopt.driver.task import SearchTask
from kopt.errors import (
    ConfigError,
    ProblemError,
    ProgrammerRefused,
    ProgrammerUnavailable,
    WorkerLost,
)
from kopt.evaluation import Evaluation
from kopt.events import EventBody
from kopt.ports import Answer, Completion, Message, Target, Usage, WriteRequest
from kopt.problem import Problem
from kopt.search.config import BestOfNConfig, MctsConfig, SearchConfig
from kopt.testing.fakes import (
    InstantEvaluator,
    ManualClock,
    ScriptedProgrammer,
    fresh_candidates,
)
from kopt.testing.small_fleet import (
    SMALL_TARGET,
    run_in_folder,
    small_problem,
    small_tasks,
)
from kopt.testing.small_workplace import small_workplace

MCTS = MctsConfig(iterations=10, candidates=2)
PARALLEL = Pace(max_in_flight=6)


def talkative(request: WriteRequest) -> Answer:
    """Answers as a model's: with a prompt, words and a price."""
    answer = fresh_candidates(request)
    words = [
        Completion(text=candidate.source, finish="stop", usage=Usage(tokens_in=7, tokens_out=3))
        for candidate in answer.candidates
    ]
    return replace(
        answer,
        messages=(Message("user", f"{request.expansion.mode} {request.expansion.parent}"),),
        sampling={"temperature": 0.5},
        completions=(*words, Completion(text="no", fault="no code block")),
    )


class SlowEvaluator(InstantEvaluator):
    """Judges after a number of turns of the loop that depends on the candidate: out of order."""

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        for _ in range(int(candidate.candidate_id[:2], 16) % 17):
            await asyncio.sleep(0)
        return await super().evaluate(problem, candidate)


class LocalEvaluator(InstantEvaluator):
    """An evaluator that knows its device, as the real one does."""

    async def target(self) -> Target:
        return SMALL_TARGET


def events(folder: Path) -> list[tuple[str, EventBody]]:
    """The journal without its times and the run's name."""
    return [(record.search, record.body) for record in read_events(folder)]


def record(
    folder: Path,
    *,
    config: SearchConfig = MCTS,
    script: Callable[[WriteRequest], Answer] = talkative,
    evaluator: InstantEvaluator | None = None,
    seeds: tuple[int, ...] = (0,),
    problems: tuple[Problem, ...] = (),
    pace: Pace | None = None,
    limits: Limits | None = None,
    arm: str = "arm",
) -> RunState:
    return run_in_folder(
        folder,
        small_tasks(config, seeds=seeds, problems=problems, arm=arm),
        programmer=ScriptedProgrammer(script),
        evaluator=evaluator or InstantEvaluator(),
        pace=pace,
        limits=limits,
    )


class Player:
    """A recording, put together with its programmer and evaluator as a fleet does."""

    def __init__(self, recording: Path, folder: Path, *, verdicts: bool = True, arm: str = "arm"):
        self.said: list[str] = []
        self.folder = folder
        self.programmer = RecordedProgrammer(
            RecordedConfig(run=str(recording), verdicts=verdicts),
            small_workplace(folder, warn=self.said.append, arm=arm),
        )
        self.inner = LocalEvaluator()
        self.evaluator = RecordedEvaluator(
            self.inner, self.programmer.recording, verdicts=verdicts, warn=self.said.append
        )

    def follow(self, tasks: list[SearchTask], earlier: RunState | None = None) -> list[SearchTask]:
        recording = self.programmer.recording
        for task in tasks:
            known = recording.search(
                task.spec.problem, arm=self.programmer.arm, seed=task.spec.seed
            )
            before = None if earlier is None else earlier.searches.get(task.spec.name)
            task.order = RecordedOrder(
                known.operations,
                ended=known.ended,
                taken=() if before is None else before.operations,
            )
        return tasks

    def play(self, tasks: list[SearchTask], *, pace: Pace | None = None) -> RunState:
        return run_in_folder(
            self.folder,
            tasks,
            programmer=self.programmer,
            evaluator=self.evaluator,
            pace=pace,
        )


def ends(state: RunState) -> dict[str, str]:
    return {name: search.ended.reason for name, search in state.searches.items() if search.ended}


def asked_and_told(state: RunState) -> dict[str, list[object]]:
    return {name: list(search.operations) for name, search in state.searches.items()}


def the_end(state: RunState) -> str:
    (reason,) = ends(state).values()
    return reason


def test_a_recorded_run_gives_the_identical_journal(tmp_path: Path) -> None:
    problems = (small_problem("set/one"), small_problem("set/two"))
    record(tmp_path / "first", problems=problems, seeds=(0, 1))
    player = Player(tmp_path / "first", tmp_path / "again")
    player.play(player.follow(small_tasks(MCTS, problems=problems, seeds=(0, 1))))
    by_search = sorted(events(tmp_path / "again"), key=lambda event: event[0])
    assert by_search == sorted(events(tmp_path / "first"), key=lambda event: event[0])
    assert player.inner.calls == []
    assert player.said == []


def test_one_search_gives_the_identical_journal_without_its_order(tmp_path: Path) -> None:
    record(tmp_path / "first")
    player = Player(tmp_path / "first", tmp_path / "again")
    player.play(small_tasks(MCTS))
    assert events(tmp_path / "again") == events(tmp_path / "first")


def test_verdicts_of_this_host_are_reached_anew_unless_they_are_asked_for(tmp_path: Path) -> None:
    record(tmp_path / "first")
    player = Player(tmp_path / "first", tmp_path / "again", verdicts=False)
    player.play(small_tasks(MCTS))
    assert events(tmp_path / "again") == events(tmp_path / "first")
    assert len(player.inner.calls) == 20  # 10 expansions of 2, all different


def test_a_parallel_recording_is_played_in_its_own_order(tmp_path: Path) -> None:
    problems = tuple(small_problem(f"set/{name}") for name in "abcd")
    config = MctsConfig(iterations=12, candidates=2)
    state = record(
        tmp_path / "first",
        config=config,
        problems=problems,
        evaluator=SlowEvaluator(),
        pace=Pace(max_in_flight=9),
    )
    for number, pace in enumerate((Pace(max_in_flight=1), Pace(max_in_flight=50))):
        player = Player(tmp_path / "first", tmp_path / f"again{number}")
        again = player.play(player.follow(small_tasks(config, problems=problems)), pace=pace)
        assert asked_and_told(again) == asked_and_told(state)
        assert set(ends(again).values()) == {"budget"}
    player = Player(tmp_path / "first", tmp_path / "deterministic")
    again = player.play(player.follow(small_tasks(config, problems=problems)))
    assert asked_and_told(again) == asked_and_told(state), "the recording's order stands above"


def test_a_resumed_replay_goes_on_in_the_recordings_order(tmp_path: Path) -> None:
    state = record(tmp_path / "first", evaluator=SlowEvaluator(), pace=PARALLEL)
    total = sum(1 for _ in read_events(tmp_path / "first"))
    for cut in range(1, total, 19):
        folder = tmp_path / f"cut{cut}"
        copy_events(tmp_path / "first", folder, first=cut)
        earlier = folded(folder)
        player = Player(tmp_path / "first", folder)
        tasks = player.follow(small_tasks(MCTS, earlier=earlier), earlier)
        assert asked_and_told(player.play(tasks, pace=PARALLEL)) == asked_and_told(state), cut


def test_a_killed_and_resumed_recording_replays(tmp_path: Path) -> None:
    record(tmp_path / "whole")
    whole = events(tmp_path / "whole")
    for cut in range(1, len(whole), 17):
        first = tmp_path / f"first{cut}"
        copy_events(tmp_path / "whole", first, first=cut)
        run_in_folder(
            first,
            small_tasks(MCTS, earlier=folded(first)),
            programmer=ScriptedProgrammer(talkative),
            evaluator=InstantEvaluator(),
        )
        player = Player(first, tmp_path / f"again{cut}")
        again = player.play(player.follow(small_tasks(MCTS)))
        assert asked_and_told(again) == asked_and_told(folded(tmp_path / "whole")), cut


def test_a_recording_that_was_interrupted_is_played_as_far_as_it_goes(tmp_path: Path) -> None:
    record(tmp_path / "whole")
    kinds = [body.kind for _, body in events(tmp_path / "whole")]
    third_answer = [n for n, kind in enumerate(kinds) if kind == "prompt_sent"][2]
    copy_events(tmp_path / "whole", tmp_path / "first", first=third_answer)
    player = Player(tmp_path / "first", tmp_path / "again")
    state = player.play(player.follow(small_tasks(MCTS)))
    assert the_end(state) == (
        f"failed: programmer recorded cannot write: {tmp_path / 'first'}: set/one, arm arm, "
        "seed 0 was interrupted before expansion 2 was answered"
    )
    (search,) = state.searches.values()
    assert sum(len(expansion.told) for expansion in search.expansions.values()) == 4


def test_more_than_was_recorded_is_refused_by_its_ordinal(tmp_path: Path) -> None:
    record(tmp_path / "first")
    more = MctsConfig(iterations=12, candidates=2)
    player = Player(tmp_path / "first", tmp_path / "again")
    state = player.play(player.follow(small_tasks(more)))
    assert the_end(state).endswith(
        "set/one, arm arm, seed 0 has no expansion 10: it has expansions 0 to 9"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seeds": (7,)}, "arm arm, seed 7: it has the seeds 0, 1"),
        (
            {"problems": (small_problem("set/x"),)},
            "set/x, arm arm, seed 0: its problems are set/one",
        ),
        (
            {"problems": (Problem(name="set/one", source="other"),)},
            "its set/one has another source or dtype",
        ),
    ],
)
def test_an_unknown_search_is_refused_with_what_there_is(
    tmp_path: Path, change: dict[str, tuple[int, ...]], words: str
) -> None:
    record(tmp_path / "first", seeds=(0, 1))
    player = Player(tmp_path / "first", tmp_path / "again")
    reason = the_end(player.play(small_tasks(MCTS, **change)))  # type: ignore[arg-type]
    assert words in reason
    assert "\n" not in reason


def test_a_search_that_went_another_way_says_what_was_expected_and_found(tmp_path: Path) -> None:
    record(tmp_path / "first", config=BestOfNConfig(iterations=10, candidates=2))
    player = Player(tmp_path / "first", tmp_path / "again")
    state = player.play(player.follow(small_tasks(MctsConfig(iterations=10, candidates=3))))
    reason = the_end(state)
    assert "expansion 0 was `initial from ROOT x2` there and is `initial from ROOT x3`" in reason
    assert "\n" not in reason


def test_the_arm_is_the_only_one_or_the_one_of_the_same_name(tmp_path: Path) -> None:
    record(tmp_path / "one", arm="a")
    assert Player(tmp_path / "one", tmp_path, arm="other").programmer.arm == "a"
    with Journal(tmp_path / "two", run="two", clock=ManualClock()) as journal:
        for arm in ("a", "b"):
            (task,) = small_tasks(MCTS, arm=arm)
            journal.append(task.spec.name, task.spec.started())
    assert Player(tmp_path / "two", tmp_path, arm="b").programmer.arm == "b"
    with pytest.raises(
        ConfigError, match=r"it has the arms a, b; choose one with programmer\.arm="
    ):
        Player(tmp_path / "two", tmp_path, arm="other")
    with pytest.raises(ConfigError, match=r"programmer\.arm=c: .* has a, b"):
        RecordedProgrammer(
            RecordedConfig(run=str(tmp_path / "two"), arm="c"),
            small_workplace(tmp_path, warn=print),
        )


def test_a_folder_that_is_no_run_or_never_began_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a run folder"):
        Player(tmp_path / "nowhere", tmp_path)
    RunDir(tmp_path).write_manifest({})
    with pytest.raises(ConfigError, match="found no search"):
        Player(tmp_path, tmp_path)


def test_a_lost_answer_is_one_line(tmp_path: Path) -> None:
    record(tmp_path / "first")
    for artefact in (tmp_path / "first" / "artefacts").rglob("*"):
        if artefact.is_file() and artefact.read_text().startswith('{"candidates"'):
            artefact.write_text("{}")
    player = Player(tmp_path / "first", tmp_path / "again")
    reason = the_end(player.play(small_tasks(MCTS)))
    assert "damaged" in reason
    assert "\n" not in reason


def test_a_recording_under_way_is_said(tmp_path: Path) -> None:
    record(tmp_path / "first")
    with Journal(tmp_path / "first", run="first", clock=ManualClock()):
        player = Player(tmp_path / "first", tmp_path / "again")
    (line,) = player.said
    assert "is still being written (pid " in line


def setbacks(request: WriteRequest) -> Answer:
    """Fails, writes less, or gives a node up, by the expansion's ordinal."""
    match request.expansion.ordinal % 7:
        case 1:
            raise ProgrammerUnavailable("openai", "no answer within 900 s")
        case 3:
            raise WorkerLost("rewriter", "killed")
        case 5:
            return replace(talkative(request), candidates=talkative(request).candidates[:1])
        case 6 if request.expansion.parent is not None:
            return replace(talkative(request), exhausted=True, note="nothing more here")
        case _:
            return talkative(request)


class FaultyEvaluator(SlowEvaluator):
    """Loses the worker on some candidates, always."""

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        if int(candidate.candidate_id[2:4], 16) % 6 == 0:
            raise WorkerLost("timing 0", "the device fell off the bus")
        return await super().evaluate(problem, candidate)


@pytest.mark.parametrize("pace", [None, PARALLEL], ids=["deterministic", "parallel"])
@pytest.mark.parametrize("verdicts", [True, False])
def test_cancelled_and_partial_expansions_replay_the_same(
    tmp_path: Path, pace: Pace | None, *, verdicts: bool
) -> None:
    config = MctsConfig(iterations=20, candidates=3)
    state = record(
        tmp_path / "first",
        config=config,
        script=setbacks,
        evaluator=FaultyEvaluator(),
        pace=pace,
        seeds=(0, 1, 2),
    )
    cancelled = [
        expansion
        for search in state.searches.values()
        for expansion in search.expansions.values()
        if expansion.cancelled
    ]
    assert any(expansion.told for expansion in cancelled), "some are partial"
    assert any(not expansion.answers for expansion in cancelled), "some were never answered"
    player = Player(tmp_path / "first", tmp_path / "again", verdicts=verdicts)
    again = player.play(player.follow(small_tasks(config, seeds=(0, 1, 2))), pace=pace)
    assert asked_and_told(again) == asked_and_told(state)
    assert ends(again) == ends(state)
    again_made = [body for _, body in events(tmp_path / "again") if body.kind == "candidate_made"]
    first_made = [body for _, body in events(tmp_path / "first") if body.kind == "candidate_made"]
    assert sorted(map(repr, again_made)) == sorted(map(repr, first_made))


def test_a_search_that_failed_fails_again_in_the_same_words(tmp_path: Path) -> None:
    def refuse(request: WriteRequest) -> Answer:
        if request.expansion.ordinal == 2:
            raise ProgrammerRefused("openai", "OPENAI_API_KEY is not accepted")
        return talkative(request)

    def break_down(problem: Problem, candidate: Candidate) -> None:
        raise ProblemError(problem.name, "get_inputs() raises")

    record(tmp_path / "refused", script=refuse)
    record(tmp_path / "broken", evaluator=InstantEvaluator(break_down))  # type: ignore[arg-type]
    for name in ("refused", "broken"):
        player = Player(tmp_path / name, tmp_path / f"{name}-again")
        player.play(player.follow(small_tasks(MCTS)))
        assert events(tmp_path / f"{name}-again") == events(tmp_path / name)
        assert player.inner.calls == []


def test_a_recording_that_a_limit_ended_ends_there_again(tmp_path: Path) -> None:
    state = record(tmp_path / "first", limits=Limits(tokens=60))
    assert the_end(state) == "limits.tokens=60"
    player = Player(tmp_path / "first", tmp_path / "again")
    player.play(player.follow(small_tasks(MCTS)))
    assert events(tmp_path / "again") == events(tmp_path / "first")


def test_what_has_no_recorded_verdict_is_judged_here_and_said_once(tmp_path: Path) -> None:
    record(tmp_path / "first", config=BestOfNConfig(iterations=2, candidates=2))
    player = Player(tmp_path / "first", tmp_path / "again")

    async def judge() -> list[Evaluation]:
        known = next(
            body for _, body in events(tmp_path / "first") if body.kind == "candidate_made"
        )
        source = RunDir(tmp_path / "first").artefacts.get(known.source)
        candidates = [
            Candidate(source=source, language="torch"),
            Candidate(source="# new", language="torch"),
            Candidate(source="# newer", language="torch"),
        ]
        return [await player.evaluator.evaluate(small_problem(), each) for each in candidates]

    evaluations = asyncio.run(judge())
    assert len(evaluations) == 3
    assert len(player.inner.calls) == 2
    (line,) = player.said
    assert "judged here" in line


def test_the_target_is_the_recordings_where_its_verdicts_are_given(tmp_path: Path) -> None:
    record(tmp_path / "first", evaluator=InstantEvaluator(device="NVIDIA H200"))
    player = Player(tmp_path / "first", tmp_path / "again")
    assert asyncio.run(player.evaluator.target()) == SMALL_TARGET, "no manifest says"
    device = {"kind": "cuda", "name": "NVIDIA H200", "arch": "sm_90", "languages": ["triton"]}
    RunDir(tmp_path / "first").write_manifest({"device": device})
    target = asyncio.run(player.evaluator.target())
    assert target == Target(device="cuda", name="NVIDIA H200", arch="sm_90", languages=("triton",))
    here = Player(tmp_path / "first", tmp_path / "here", verdicts=False)
    assert asyncio.run(here.evaluator.target()) == SMALL_TARGET
    state = player.play(player.follow(small_tasks(MCTS)))
    (search,) = state.searches.values()
    devices = {
        evaluation["device"]
        for expansion in search.expansions.values()
        for evaluation in expansion.verdicts.values()
    }
    assert devices == {"NVIDIA H200"}


def test_setbacks_of_a_recording_survive_pickling() -> None:
    for error in (
        RecordedSetback("recorded", "no answer"),
        RecordedLoss("recorded", "no answer"),
        RecordedFault("set/one", "no answer"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == "no answer"


def copy_events(source: Path, folder: Path, *, first: int) -> None:
    """Make a run folder whose driver died after so many events; its artefacts are all there."""
    folder.mkdir()
    shutil.copytree(source / "artefacts", folder / "artefacts")
    with Journal(folder, run=folder.name, clock=ManualClock()) as journal:
        for record_, _ in zip(read_events(source), range(first), strict=False):
            journal.append(record_.search, record_.body)


def folded(folder: Path) -> RunState:
    return fold(read_events(folder))
