"""The section `memory`: its choices, its words, what it refuses, and what a config comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from kopt.cli.compose import compose_config
from kopt.cli.remembering import make_remembering
from kopt.cli.resume import resumed_config
from kopt.config import RunConfig, load, to_plain
from kopt.data.rundir import RunDir
from kopt.driver.memories import Remembering
from kopt.errors import ConfigError
from kopt.memory.config import NO_MEMORY
from kopt.memory.experience import ExperienceRule
from kopt.memory.rule import MemoryRule
from kopt.testing.fake_extractor import InstantExtractor

OPENAI = {"kind": "openai", "model": "m"}
MODEL = InstantExtractor()
NOBODY = object()


def remembering(
    config: RunConfig, *, programmer: object = MODEL, run: Path = Path("runs/a")
) -> Remembering:
    return make_remembering(config, run=run, programmer=programmer, warn=lambda line: None)


def test_by_default_authors_that_read_are_told_lessons_by_rule_and_the_history() -> None:
    made = remembering(load({"problem": "x", "programmer": OPENAI}))
    assert made.rule == MemoryRule(search=True, history=True)
    assert made.extractor is None
    assert made.strategies is None


@pytest.mark.parametrize("programmer", ["rewriter", "recorded"])
def test_nothing_is_remembered_for_authors_that_read_nothing(programmer: str) -> None:
    section = {"kind": programmer} | ({"run": "r"} if programmer == "recorded" else {})
    assert remembering(load({"problem": "x", "programmer": section})).rule == MemoryRule()
    asked = load({"problem": "x", "programmer": section, "memory": {"search": "on"}})
    assert remembering(asked, programmer=NOBODY).rule == MemoryRule(search=True)


def test_the_papers_arms() -> None:
    kernelpro = compose_config(["experiment=kernelpro", "programmer=openai", "programmer.model=m"])
    made = remembering(kernelpro)
    assert made.rule == MemoryRule(search=True)
    assert made.extractor is MODEL
    kernelopt = compose_config(["memory=kernelopt", "memory.tracker=/tmp/none/strategies.json"])
    made = remembering(kernelopt)
    assert made.rule == MemoryRule(
        experience=ExperienceRule(capacity=8, least_gain=1.05, least_loss=1.2), guidelines=True
    )
    assert made.strategies is not None
    assert remembering(compose_config(["memory=off", "programmer=mailbox"])).rule == MemoryRule()


@pytest.mark.parametrize(
    ("memory", "deterministic", "programmer", "is_model"),
    [
        ({"extractor": None}, False, MODEL, True),
        ({"extractor": None}, True, MODEL, False),  # its prompts may not depend on the clock
        ({"extractor": "model"}, True, MODEL, True),
        ({"extractor": "rules"}, False, MODEL, False),
        ({"extractor": None}, False, NOBODY, False),
        ({"extractor": "model", "search": "off"}, False, MODEL, False),
    ],
)
def test_who_draws_lessons(memory, deterministic, programmer, is_model) -> None:
    config = load(
        {
            "problem": "x",
            "programmer": OPENAI,
            "memory": memory,
            "deterministic": deterministic,
        }
    )
    assert (remembering(config, programmer=programmer).extractor is MODEL) is is_model


def test_on_and_off_are_words_whatever_yaml_makes_of_them() -> None:
    config = load(
        {"problem": "x", "memory": {"search": True, "history": False, "experience": True}}
    )
    memory = config.memory
    assert (memory.search, memory.history, memory.experience) == ("on", "off", "on")
    composed = compose_config(["memory.search=on", "memory.guidelines=off", "memory.history=off"])
    assert (composed.memory.search, composed.memory.history) == ("on", "off")


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"memory": {"extractor": "model"}}, "memory.extractor=model asks a model"),
        (
            {"memory": {"tracker": "t"}, "programmer": {"kind": "recorded", "run": "r"}},
            "programmer=recorded tries nothing new",
        ),
        ({"memory": {"search": "sometimes"}}, "memory.search"),
        ({"memory": {"least_gain": 1.0}}, "memory.least_gain"),
        ({"memory": {"capacity": 0}}, "memory.capacity"),
        ({"memory": {"serach": "on"}}, "search"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(section, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load({"problem": "x", **section})
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_tracker_that_is_another_file_stops_the_run_before_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    config = load({"problem": "x", "memory": {"tracker": str(path)}})
    with pytest.raises(ConfigError, match=r"memory\.tracker.*expected a strategy tracker's file"):
        remembering(config)
    assert path.read_text() == "mine"


def test_a_plug_in_that_draws_no_lessons_is_refused_where_a_model_is_asked_for() -> None:
    plugin = {"kind": "package/name"}
    config = load({"problem": "x", "programmer": plugin, "memory": {"extractor": "model"}})
    with pytest.raises(ConfigError, match="draws no lessons"):
        remembering(config, programmer=NOBODY)


def test_a_run_of_before_there_was_memory_goes_on_without(tmp_path: Path) -> None:
    class Older(RunDir):
        def read_manifest(self):
            plain = to_plain(load({"problem": "x", "programmer": OPENAI}))
            del plain["memory"]
            return {"config": plain}

    assert resumed_config(Older(tmp_path), []).memory == NO_MEMORY
