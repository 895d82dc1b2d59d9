"""KernelOPT's roles behind the Programmer port: who is asked what, kept, and played again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kopt.actors.programmers.config import RecordedConfig
from kopt.actors.programmers.recorded import RecordedProgrammer
from kopt.agent_call import AgentCall
from kopt.cli import main
from kopt.compiled.families import family_of_group
from kopt.data.corpus.gathering import gathered
from kopt.data.corpus.losses import Losses
from kopt.data.corpus.trial_row import trial_rows
from kopt.data.fold import RunState
from kopt.data.journal import read_events
from kopt.data.rundir import RunDir
from kopt.driver.replay import replay
from kopt.identity import canonical_json
from kopt.problem import Problem
from kopt.search.config import BeamConfig
from kopt.testing.role_player import RolePlayer
from kopt.testing.small_fleet import small_tasks
from kopt.testing.small_workplace import small_workplace
from kopt.testing.staffed_fleet import run_staffed

BEAM = BeamConfig(iterations=4, candidates=2, width=2, retries=2)


def made(state: RunState) -> list[tuple[int, int, str]]:
    (search,) = state.searches.values()
    return [
        (ordinal, index, each.candidate)
        for ordinal, expansion in search.expansions.items()
        for index, each in expansion.candidates.items()
    ]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RolePlayer, RunState]:
    """A whole run, with whoever played the roles."""
    folder = tmp_path_factory.mktemp("agents") / "first"
    folder.mkdir()
    player = RolePlayer()
    return folder, player, run_staffed(folder, player, search=BEAM, learns=True)


def test_each_kind_of_expansion_is_its_roles_work(first: tuple[Path, RolePlayer, RunState]) -> None:
    _, player, state = first
    (search,) = state.searches.values()
    roles = {"initial": {"codegen"}, "optimize": {"planner", "executor"}}
    modes = set()
    for ordinal, expansion in search.expansions.items():
        mode = expansion.asked.mode
        modes.add(mode)
        agents = {call.agent for call in expansion.calls}
        if mode in roles:
            assert agents == roles[mode]
        else:
            assert agents <= {"executor", "codegen"}
        asked = [place for place in player.places if place.expansion == ordinal]
        assert {place.agent for place in asked} - {"summarizer"} == agents
    assert modes == {"initial", "optimize", "debug"}
    assert replay(state)


def test_every_call_is_journalled_once_and_its_cost_is_in_its_expansions_answer(
    first: tuple[Path, RolePlayer, RunState],
) -> None:
    _, player, state = first
    (search,) = state.searches.values()
    calls = [call for expansion in search.expansions.values() for call in expansion.calls]
    places = [(call.expansion, call.agent, call.slot, call.turn) for call in calls]
    assert sorted(places) == sorted(
        tuple(place) for place in player.places if place.agent != "summarizer"
    )
    assert len(set(places)) == len(places)
    for expansion in search.expansions.values():
        paid = sum(answer.tokens_in for answer in expansion.answers.values())
        assert paid == sum(call.tokens_in for call in expansion.calls)


def test_a_plan_labels_its_candidate_and_a_repair_keeps_the_label(
    first: tuple[Path, RolePlayer, RunState],
) -> None:
    _, _, state = first
    (search,) = state.searches.values()
    by_id = {
        each.candidate: each.strategy
        for expansion in search.expansions.values()
        for each in expansion.candidates.values()
    }
    for expansion in search.expansions.values():
        for each in expansion.candidates.values():
            if expansion.asked.mode == "optimize":
                assert each.strategy.startswith("approach ")
            elif expansion.asked.mode == "debug":
                assert each.strategy == by_id[expansion.asked.parent or ""]


def test_a_repair_goes_on_with_the_conversation_of_what_failed(
    first: tuple[Path, RolePlayer, RunState],
) -> None:
    _, player, state = first
    (search,) = state.searches.values()
    repairs = [each for each in search.expansions.values() if each.asked.mode == "debug"]
    assert repairs
    for expansion in repairs:
        call = next(
            each for each in player.calls if each.place.expansion == expansion.asked.expansion
        )
        roles = [message.role for message in call.messages]
        assert roles[:2] == ["system", "user"]
        assert roles[-2:] == ["assistant", "user"]
        assert "ModelNew" in call.messages[-2].text
        assert "RuntimeError" in call.messages[-1].text


def test_the_summarizers_lessons_are_the_memory(first: tuple[Path, RolePlayer, RunState]) -> None:
    _, _, state = first
    (search,) = state.searches.values()
    learned = [update for update in search.memory if update.origin == "model"]
    assert learned
    assert {each["heading"] for each in learned[0].entries} == {"successful_patterns"}


def test_a_recording_plays_every_role_again_and_grows_the_same_tree(
    first: tuple[Path, RolePlayer, RunState], tmp_path: Path
) -> None:
    folder, _, state = first
    (folder / "manifest.json").write_text('{"schema": 1, "name": "first"}')
    recorded = RecordedProgrammer(
        RecordedConfig(run=str(folder)), small_workplace(tmp_path, warn=lambda line: None)
    )
    again = tmp_path / "again"
    again.mkdir()
    assert made(run_staffed(again, recorded, search=BEAM, learns=True)) == made(state)
    kinds = [
        [record.body for record in read_events(each) if record.body.kind == "agent_call"]
        for each in (folder, again)
    ]
    assert kinds[0] == kinds[1], "the same prompts and the same answers, at the same places"


def test_what_several_kernels_of_a_compiled_model_do_is_fusions_work(tmp_path: Path) -> None:
    player = RolePlayer()
    problem = Problem(name="m/k", source="class Model: ...\n", family=family_of_group(2))
    search = BeamConfig(iterations=1, candidates=2, width=2, retries=0)
    run_staffed(
        tmp_path / "fusion", player, search=search, tasks=small_tasks(search, problems=[problem])
    )
    assert {place.agent for place in player.places} == {"fusion"}
    assert player.calls[0].messages[0].text.startswith("You fuse kernels.")


def test_an_executor_is_shown_its_plan_and_the_version(tmp_path: Path) -> None:
    seen = []

    def watch(call: AgentCall) -> str | None:
        if call.place.agent == "executor" and len(call.messages) == 2:
            seen.append(call.messages[-1].text)
        return None

    run_staffed(tmp_path / "plans", RolePlayer(watch), search=BEAM)
    assert seen
    assert all("## The plan" in text and "## The version" in text for text in seen)


def test_the_command_shows_what_the_roles_were_asked(
    first: tuple[Path, RolePlayer, RunState], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _, state = first
    (folder / "manifest.json").write_text('{"schema": 1, "name": "first"}')
    (search,) = state.searches.values()
    planned = next(e for e in search.expansions.values() if e.asked.mode == "optimize")
    name = f"@{planned.asked.expansion}"
    assert main(["prompt", str(folder), name]) == 0
    text = capsys.readouterr().out
    assert "##### idea 0, planner: 2 calls #####" in text
    assert "##### idea 0, executor: 1 call #####" in text
    assert "=== answer ===" in text
    assert main(["prompt", str(folder), name, "--json"]) == 0
    calls = json.loads(capsys.readouterr().out)["calls"]
    assert [call["agent"] for call in calls[:2]] == ["planner", "planner"]
    assert calls[1]["cost_usd"] == 0.5


def test_a_corpus_has_the_conversation_that_each_program_answers(
    first: tuple[Path, RolePlayer, RunState],
) -> None:
    folder, player, state = first
    artefacts = RunDir(folder).artefacts
    asked = {canonical_json(call.messages) for call in player.calls}
    losses = Losses()
    (search,) = gathered(folder / "journal", losses)
    rows = list(trial_rows(search, losses))
    assert len(rows) == len(made(state))
    for row in rows:
        assert row.prompt is not None
        assert artefacts.get(row.prompt) in asked
