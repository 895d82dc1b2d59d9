"""What of a fleet is profiled, by whom, and what of it is told: the configuration's answer."""

from __future__ import annotations

from collections.abc import Callable

from kopt.config import RunConfig
from kopt.data.fold import RunState, evidence_cache
from kopt.driver.profile_rule import ProfileRule, ProfileWhen
from kopt.driver.profiles import Profiling
from kopt.ports import Analyst, Profiler, Telling
from kopt.tools.loading import load_tool_file
from kopt.tools.registry import ToolRegistry

READS_NOTHING = ("rewriter", "recorded")
"""Programmers that make nothing of findings."""


def profile_rule(config: RunConfig, *, devices: int) -> ProfileRule:
    """Return the rule that a config comes to.

    Args:
        config: of the run.
        devices: of the cluster.
    """
    findings = config.findings
    return ProfileRule(
        when=_when(config),
        energy=config.energy,
        energy_proxy=config.reward.energy_proxy,
        share=findings.share,
        limit_s=findings.deadline_s,
        devices=devices,
        telling=Telling(
            feedback=findings.feedback,
            max_findings=findings.max,
            orchestration=findings.orchestration,
            energy=config.energy == "aware",
        ),
    )


def why_not_profiled(config: RunConfig) -> str:
    """Return why nothing is profiled although nobody said so; empty where something is."""
    if config.findings.profile is not None or _profiles(config):
        return ""
    if config.findings.feedback == "none" or config.programmer.kind == "recorded":
        return ""  # that is what the arm says; a recording has its own answers
    return (
        f"nothing is profiled: programmer={config.programmer.kind} reads no findings "
        "(findings.profile=correct profiles all the same)"
    )


def load_tools(config: RunConfig) -> None:
    """Load the user's tools, and check that every tool there is can be had.

    Raises:
        ConfigError: a file cannot be loaded, or an entry point names no tool.
    """
    for path in config.tools.files:
        load_tool_file(path)
    ToolRegistry.tools()


def make_profiling(
    config: RunConfig,
    *,
    devices: int,
    earlier: RunState,
    programmer: object,
    make_profiler: Callable[[], Profiler],
    warn: Callable[[str], None],
) -> Profiling:
    """Return who profiles in a run, and by which rule; a profiler is made only where one is needed.

    Args:
        config: of the run.
        devices: of the cluster.
        earlier: what an earlier part of the run came to.
        programmer: that condenses profiles too, with profile_analysis=on.
        make_profiler: starts the profile lane.
        warn: shows one line to the user.

    Raises:
        ConfigError: a tool cannot be loaded.
    """
    rule = profile_rule(config, devices=devices)
    if not _profiles(config):
        reason = why_not_profiled(config)
        if reason:
            warn(reason)
        return Profiling(rule=rule, known=evidence_cache(earlier), warn=warn)
    load_tools(config)
    analyst: Analyst | None = None
    if config.profile_analysis == "on":
        analyst = _analyst(programmer)
    return Profiling(
        profiler=make_profiler(),
        analyst=analyst,
        rule=rule,
        known=evidence_cache(earlier),
        warn=warn,
    )


def _when(config: RunConfig) -> ProfileWhen:
    if config.findings.profile is not None:
        return config.findings.profile
    reads = config.programmer.kind not in READS_NOTHING and config.findings.feedback != "none"
    return "expanded" if reads else "none"


def _profiles(config: RunConfig) -> bool:
    return _when(config) != "none" or config.energy != "off"


def _analyst(programmer: object) -> Analyst:
    assert isinstance(programmer, Analyst), "the configuration allows only what can analyse"
    return programmer
