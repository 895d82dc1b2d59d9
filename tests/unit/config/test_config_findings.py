"""Findings, energy and analysis in the configuration: words, contradictions, what null comes to."""

from __future__ import annotations

from typing import Any

import pytest

from kopt.cli.compose import compose_config
from kopt.cli.profiling import profile_rule, why_not_profiled
from kopt.config import load
from kopt.errors import ConfigError

OPENAI = {"kind": "openai", "base_url": "http://localhost:1/v1", "model": "m"}


def rule(**settings: Any):
    return profile_rule(load({"problem": "x", **settings}), devices=2)


def test_the_defaults_are_the_paper_s_and_the_rewriter_reads_none() -> None:
    made = rule()
    assert (made.when, made.energy) == ("none", "off")
    assert (made.telling.feedback, made.telling.max_findings) == ("tools", 4)
    assert made.telling.orchestration == "proactive"
    assert "reads no findings" in why_not_profiled(load({"problem": "x"}))


@pytest.mark.parametrize("programmer", [OPENAI, {"kind": "mailbox"}])
def test_whoever_reads_findings_has_what_is_optimised_profiled(programmer: dict[str, Any]) -> None:
    assert rule(programmer=programmer).when == "expanded"
    assert rule(programmer=programmer, findings={"feedback": "none"}).when == "none"
    assert rule(programmer=programmer, findings={"profile": "correct"}).when == "correct"
    assert why_not_profiled(load({"problem": "x", "programmer": programmer})) == ""


def test_null_tells_all_findings() -> None:
    assert rule(findings={"max": None}).telling.max_findings is None


def test_energy_is_in_the_reward_and_in_the_prompt_only_where_it_counts() -> None:
    for mode, epsilon, is_told in (
        ("off", 0.0, False),
        ("measure", 0.0, False),
        ("aware", 0.01, True),
    ):
        config = load({"problem": "x", "energy": mode})
        assert config.reward.rule(config.energy).energy_epsilon == epsilon
        assert profile_rule(config, devices=1).telling.energy is is_told


def test_on_and_off_are_words_whatever_yaml_makes_of_them() -> None:
    config = load({"problem": "x", "programmer": OPENAI, "profile_analysis": True, "energy": False})
    assert (config.profile_analysis, config.energy) == ("on", "off")
    composed = compose_config(
        ["programmer=openai", "programmer.model=m", "profile_analysis=on", "energy=off"]
    )
    assert (composed.profile_analysis, composed.energy) == ("on", "off")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"profile_analysis": "on"}, "profile_analysis=on asks a model"),
        ({"findings": {"orchestration": "reactive"}}, "programmer=rewriter is none"),
        (
            {"programmer": OPENAI, "findings": {"orchestration": "reactive", "feedback": "raw"}},
            "there are none to offer",
        ),
        ({"findings": {"feedback": "toolz"}}, "findings.feedback"),
        ({"findings": {"max": 0}}, "findings.max"),
        ({"energy": "measured"}, "energy"),
    ],
)
def test_what_contradicts_itself_is_one_clear_line(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load({"problem": "x", **settings})
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not str(caught.value).startswith("conf :")
