"""Roles that break rules, collapse, do not answer or die: nothing is lost, nothing paid twice."""

from __future__ import annotations

from pathlib import Path

from kopt.actors.programmers.agents.planning import collapsed_of
from kopt.actors.programmers.agents.tally import AgentTally
from kopt.actors.programmers.agents_config import AgentsConfig
from kopt.agent_call import AgentCall, AgentReply
from kopt.data.fold import RunState
from kopt.driver.replay import replay
from kopt.errors import AnswerAwaited, ProgrammerUnavailable
from kopt.ports import Completion
from kopt.search.config import BeamConfig, GreedyConfig
from kopt.testing.role_player import RolePlayer
from kopt.testing.small_fleet import small_tasks
from kopt.testing.staffed_fleet import run_staffed

CARELESS = """strategy: s

```python
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * FACTOR + {}
```
"""
"""Breaks a rule: nothing defines FACTOR."""
BEAM = BeamConfig(iterations=4, candidates=2, width=2, retries=2)


def made(state: RunState) -> list[tuple[int, int, str]]:
    (search,) = state.searches.values()
    return [
        (ordinal, index, each.candidate)
        for ordinal, expansion in search.expansions.items()
        for index, each in expansion.candidates.items()
    ]


def test_a_run_that_died_between_two_calls_asks_only_what_is_missing(tmp_path: Path) -> None:
    whole = run_staffed(tmp_path / "whole", RolePlayer(), search=BEAM)

    def dies(call: AgentCall) -> str | None:
        if call.place.agent == "executor":
            raise AnswerAwaited("later")
        return None

    folder = tmp_path / "broken"
    begun = RolePlayer(dies)
    state = run_staffed(folder, begun, search=BEAM)
    assert not state.ended
    planned = {place for place in begun.places if place.agent == "planner"}
    assert planned
    later = RolePlayer()
    state = run_staffed(folder, later, search=BEAM, tasks=small_tasks(BEAM, earlier=state))
    assert not planned & set(later.places), "plans are not paid for twice"
    assert made(state) == made(whole)
    assert replay(state)


def test_a_broken_rule_goes_back_in_the_same_conversation(tmp_path: Path) -> None:
    def careless(call: AgentCall) -> str | None:
        if call.place.agent != "codegen" or call.place.turn:
            return None
        return CARELESS.format(call.place.slot)

    player = RolePlayer(careless)
    run_staffed(tmp_path / "rules", player, search=BeamConfig(iterations=1, candidates=2, width=2))
    assert [(p.slot, p.turn) for p in sorted(player.places) if p.agent == "codegen"] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]
    assert "`FACTOR`" in player.calls[-1].messages[-1].text


def test_an_answer_that_was_cut_off_is_asked_for_again_and_shorter(tmp_path: Path) -> None:
    def long_winded(call: AgentCall) -> Completion | None:
        return None if call.place.turn else Completion(text="Let me think.", finish="length")

    player = RolePlayer(long_winded)
    search = BeamConfig(iterations=1, candidates=1, width=1, retries=0)
    state = run_staffed(tmp_path / "cut", player, search=search)
    assert len(made(state)) == 1
    assert "it was cut off at the token limit: be brief" in player.calls[1].messages[-1].text


def test_what_keeps_breaking_a_rule_is_judged_as_it_is(tmp_path: Path) -> None:
    def careless(call: AgentCall) -> str | None:
        return CARELESS.format(call.place.slot)

    player = RolePlayer(careless)
    beam = BeamConfig(iterations=1, candidates=2, width=2, retries=0)
    config = AgentsConfig(resubmissions=1)
    state = run_staffed(tmp_path / "kept", player, config=config, search=beam)
    assert len(player.calls) == 4
    assert len(made(state)) == 2


def test_an_idea_that_nobody_answers_leaves_the_others_and_what_was_paid(tmp_path: Path) -> None:
    def half(call: AgentCall) -> str | None:
        if call.place.slot == 1:
            raise ProgrammerUnavailable("scripted", "down")
        return None

    state = run_staffed(
        tmp_path / "half",
        RolePlayer(half),
        search=BeamConfig(iterations=1, candidates=2, width=2, retries=0),
    )
    (search,) = state.searches.values()
    expansion = search.expansions[0]
    assert len(expansion.candidates) == 1
    assert expansion.answers[1].fault.startswith("not answered:")
    assert expansion.cancelled is not None


def test_where_nobody_answers_at_all_the_expansion_is_cancelled_and_the_search_fails(
    tmp_path: Path,
) -> None:
    def down(call: AgentCall) -> str | None:
        raise ProgrammerUnavailable("scripted", "down")

    state = run_staffed(tmp_path / "down", RolePlayer(down), search=BEAM)
    (search,) = state.searches.values()
    assert search.ended is not None
    assert search.ended.failed
    assert not any(expansion.answers for expansion in search.expansions.values())


def test_plans_that_collapse_are_told_to_differ_and_repairs_do_not_count(tmp_path: Path) -> None:
    def stubborn(call: AgentCall) -> str | None:
        if call.place.agent == "planner":
            return '{"plan": {"direction": "Tile size 64", "change": "tile by 64"}}'
        return None

    player = RolePlayer(stubborn)
    run_staffed(tmp_path / "melt", player, search=GreedyConfig(iterations=12, candidates=1))
    told = [
        "hardly more than one approach (Tile size 64)" in call.messages[-1].text
        for call in player.calls
        if call.place.agent == "planner"
    ]
    assert not told[0], "codegen's own words came before"
    assert any(told)


def test_collapse_is_two_approaches_among_the_last_six() -> None:
    assert collapsed_of(["a", "b", "a", "c"]) == ()
    assert collapsed_of(["a", "b"]) == ()
    assert collapsed_of(["z", "Tile 64", "tile: 128", "fuse", "Fuse!", "tile 32", "fuse"]) == (
        "tile 32",
        "fuse",
    )


def test_calls_whose_reference_is_cut_are_counted_by_role() -> None:
    tally = AgentTally()
    reply = AgentReply(completion=Completion(text="a plan"), sampling={})
    tally.add("planner", reply, reference_is_cut=True)
    tally.add("planner", reply)
    (line,) = tally.lines()
    assert line.startswith("planner: 2 calls (1 with a part of the reference left out), ")
