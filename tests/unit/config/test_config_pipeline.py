"""The section `pipeline`: who may play roles, and what KernelOPT's experiments make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kopt.actors.programmers.agents import AgentsProgrammer
from kopt.actors.programmers.agents_config import AgentsConfig
from kopt.actors.programmers.ensemble import EnsembleProgrammer
from kopt.actors.programmers.openai import OpenAIProgrammer
from kopt.actors.programmers.postbox import MailboxProgrammer
from kopt.actors.programmers.recorded import RecordedProgrammer
from kopt.agent_call import Talker
from kopt.cli.compose import compose_config
from kopt.cli.plan import plan_rows, plan_text
from kopt.cli.rates import Rates
from kopt.cli.staffing import make_staff
from kopt.config import load
from kopt.errors import ConfigError
from kopt.problem import Problem
from kopt.testing.fakes import ScriptedProgrammer
from kopt.testing.role_player import RolePlayer

OPENAI = {"kind": "openai", "model": "m"}
AGENTS = {"kind": "agents"}


class Player(ScriptedProgrammer, RolePlayer):
    """Writes, and talks."""

    def __init__(self) -> None:
        ScriptedProgrammer.__init__(self)
        RolePlayer.__init__(self)


def say_nothing(line: str) -> None:
    del line


def test_one_author_is_the_default_and_roles_are_a_choice() -> None:
    single = load({"problem": "x", "programmer": OPENAI})
    assert single.pipeline.kind == "single"
    assert make_staff(single, ScriptedProgrammer(), warn=say_nothing) is None
    agents = compose_config(["pipeline=agents", "programmer=openai", "pipeline.max_queries=2"])
    assert isinstance(agents.pipeline, AgentsConfig)
    assert agents.pipeline.max_queries == 2
    assert agents.arm_name == "mcts-openai-agents"
    assert isinstance(make_staff(agents, Player(), warn=say_nothing), AgentsProgrammer)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"programmer": {"kind": "rewriter"}}, "programmer=rewriter reads none"),
        (
            {"programmer": OPENAI, "findings": {"orchestration": "reactive"}},
            "the planner asks: leave it proactive",
        ),
        ({"programmer": OPENAI, "pipeline": {**AGENTS, "max_querys": 1}}, "max_queries"),
        ({"programmer": OPENAI, "pipeline": {**AGENTS, "max_queries": -1}}, "max_queries"),
    ],
)
def test_roles_that_cannot_be_played_are_refused_in_one_line(
    more: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load({"problem": "x", "pipeline": AGENTS, **more})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "kind", [OpenAIProgrammer, EnsembleProgrammer, RecordedProgrammer, MailboxProgrammer]
)
def test_whoever_answers_in_words_can_play_roles(kind: type) -> None:
    assert issubclass(kind, Talker)


def test_a_plan_counts_the_calls_of_roles() -> None:
    words = ["pipeline=agents", "programmer=openai", "search.iterations=2", "search.candidates=3"]
    config = compose_config([*words, "problem=builtin/softmax"])
    rows = plan_rows(config, [Problem(name="p", source="")], rates=Rates(pace_s={}, usage={}))
    # 6 queries, a reminder and the plan, then 1 + 2 submissions: 11 for each of 6 candidates.
    assert "at most 66 prompts of its roles" in plan_text(config, rows)


def test_a_programmer_that_answers_no_calls_is_refused_by_name() -> None:
    config = load({"problem": "x", "programmer": OPENAI, "pipeline": AGENTS})
    with pytest.raises(ConfigError, match="programmer=openai answers no calls of roles"):
        make_staff(config, ScriptedProgrammer(), warn=say_nothing)


@pytest.mark.parametrize("kind", ["recorded", "mailbox"])
def test_a_summarizer_may_be_a_person_or_a_recording(kind: str, tmp_path: Path) -> None:
    programmer = {"kind": kind} | ({"run": str(tmp_path)} if kind == "recorded" else {})
    learns = {"search": "on", "extractor": "model"}
    asked = {"problem": "x", "programmer": programmer, "memory": learns}
    assert load({**asked, "pipeline": AGENTS}).memory.extractor == "model"
    with pytest.raises(ConfigError, match="extractor=model asks a model"):
        load(asked)


@pytest.mark.parametrize("name", ["main", "ablation"])
def test_kernelopts_experiments_are_whole(name: str) -> None:
    config = compose_config([f"experiment=kernelopt/{name}"])
    assert (config.pipeline.kind, config.mode) == ("agents", "compiled")
    assert config.compiled.max_autotune
    assert config.compiled.performance_gate == "on"
    assert (config.memory.search, config.memory.extractor) == ("on", None)
    assert not config.lacks
    assert not any("not built" in note for note in config.notes)


def test_no_arm_of_the_ablation_lacks_anything() -> None:
    for number in range(7):
        words = ["experiment=kernelopt/ablation", f"variant=kernelopt/c{number}"]
        config = compose_config(words)
        assert not config.lacks
        assert config.arm == f"C{number}"
        assert (config.compiled.performance_gate == "off") == (number == 3)
        assert isinstance(config.pipeline, AgentsConfig)
        assert (config.pipeline.libraries == "replace") == (number == 6)
