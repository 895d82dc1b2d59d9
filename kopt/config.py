"""RunConfig: the sections put together, from a plain mapping to a frozen, validated tree.

Hydra composes YAML; this is the one place where its result is checked. Each section's class lives
beside the part that reads it, and a part is given its own section, never the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from kopt.actors.compiled.config import CompiledConfig
from kopt.actors.config import (
    ClusterConfig,
    DeviceKind,
    EvaluateConfig,
)
from kopt.actors.programmers.agents_config import PipelineConfig, SingleConfig
from kopt.actors.programmers.config import ProgrammerConfig, RewriterConfig
from kopt.actors.trackers.config import NoTrackerConfig, TrackerConfig
from kopt.analysis.config import StatsConfig
from kopt.config_errors import error_lines
from kopt.data.problems.config import ProblemsConfig
from kopt.driver.profile_rule import EnergyMode, EnergyProxy, ProfileWhen
from kopt.driver.turns import Share
from kopt.errors import ConfigError
from kopt.foreign_language import take_up
from kopt.memory.config import MemoryConfig
from kopt.part_file import part_label
from kopt.plugin_kind import PluginKind
from kopt.ports import Orchestration
from kopt.reward import LOG_SPEEDUP, RewardBaseline, RewardRule
from kopt.search.config import MctsConfig, SearchConfig
from kopt.section import Section
from kopt.tools.diagnosis import MAX_FINDINGS
from kopt.tools.energy_reward import EPSILON
from kopt.tools.feedback import FeedbackMode

MODEL_KINDS = ("openai", "vllm", "ensemble")
"""Programmers that are models: they can be asked for more than candidates."""
SPEECHLESS = ("rewriter", "recorded", "mailbox")
"""Programmers that draw no lessons by themselves."""


class RewardConfig(Section):
    """How a verdict becomes the number that a tree backs up; see kopt.reward."""

    kind: Literal["log_speedup"] | PluginKind = LOG_SPEEDUP
    """`log_speedup`: ours, by the keys below. A rule of another package (`package/name`, group
    `kopt.rewards`) or of a file of yours (`path/to/mine.py:NAME`) reads them as it likes."""
    floor: float | None = -1.9
    """Least reward of a correct candidate; null is the paper (no floor)."""
    baseline: RewardBaseline = "best"
    """What ln(speedup) is against; `eager` for KernelPro's arms, `given` for a kernel in use."""
    energy_epsilon: float = Field(default=EPSILON, gt=0)
    """Weight of ln(energy reduction) with energy=aware; its term never outweighs half a per cent of
    speed."""
    energy_proxy: EnergyProxy = "corrected"
    """Form of the energy proxy there: `paper` is KernelPro's Eq. 4, which charges wide loads."""

    def rule(self, energy: EnergyMode = "off") -> RewardRule:
        """Return the domain's form of this section, under a mode of energy."""
        return RewardRule(
            kind=self.kind,
            floor=self.floor,
            baseline=self.baseline,
            energy_epsilon=self.energy_epsilon if energy == "aware" else 0.0,
        )


class FindingsConfig(Section):
    """What is profiled, and what of it authors are told; see kopt.driver.profile_rule."""

    feedback: FeedbackMode = "tools"
    """`tools`: findings (KernelPro). `rules`: throughputs and the three of NVIDIA's rules with the
    greatest estimate (KernelOPT). `raw`: about fifty counters. `none`: nothing."""
    max: int | None = Field(default=MAX_FINDINGS, ge=1)
    """Findings in a prompt; null: all."""
    orchestration: Orchestration = "proactive"
    """`proactive`: findings stand in the prompt. `reactive`: the tools are offered to the model as
    functions; only with programmer=openai or vllm and feedback=tools."""
    profile: ProfileWhen | None = None
    """Which correct candidates: `expanded` (those that are to be optimised), `correct` (each),
    `best` (each that is the fastest so far), `none`; null: `expanded` where authors read findings,
    else `none`."""
    share: float | None = Field(default=0.5, gt=0, le=1)
    """Of the device's time that profiles may take; null for no bound. Of no effect with
    deterministic=true, where prompts are not to depend on the clock."""
    deadline_s: float = Field(default=300.0, gt=0)
    """For one profile, waiting for the device included."""


class ToolsConfig(Section):
    """Micro-profiling tools beside kopt's own."""

    files: tuple[str, ...] = ()
    """Python files that register tools (kopt/tools/README.md); a single one may stand alone."""

    @field_validator("files", mode="before")
    @classmethod
    def _one_may_stand_alone(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value


class LimitsConfig(Section):
    """When a fleet stops although its searches have budget left; null is no limit.

    The jobs of a multirun that have the same limits share them: `limits.candidates=1000` is 1000
    over all of them, which `fleet.share` deals out to their arms.
    """

    wall_s: float | None = Field(default=None, gt=0)
    """Seconds from the start of the run."""
    candidates: int | None = Field(default=None, ge=1)
    """Candidates told, over all searches."""
    tokens: int | None = Field(default=None, ge=1)
    """Tokens read and written by models, over all searches."""
    cost_usd: float | None = Field(default=None, gt=0)
    """What models cost at the configured prices, over all searches."""
    gpu_s: float | None = Field(default=None, gt=0)
    """Seconds that devices verify, time and profile, over all searches; of the CPU where that is
    the device."""


class StopConfig(Section):
    """When one search ends although its budget is not spent; null is never."""

    sol_share: float | None = Field(default=None, gt=0, le=1)
    """Speed of light's time ÷ the best candidate's: 0.95 ends a search that has come so near."""
    idle_iterations: int | None = Field(default=None, ge=1)
    """So many expansions' worth of candidates in a row without a faster one."""


class FleetConfig(Section):
    """How the jobs of a multirun share what there is; a run of its own has it to itself."""

    share: Share = "candidates"
    """What arms get alike, where not all can have it at once: evaluated `candidates`, the devices'
    time (`gpu_s`) or models' `tokens`. One for all jobs."""
    priority: int = 0
    """Of this job: those of a higher one are served first (`fleet.priority=0,1` beside an arm)."""
    stats: StatsConfig = Field(default_factory=StatsConfig)
    """How the tables at its end count; the first job's is everybody's."""


class RunConfig(Section):
    """Everything that decides what a run does."""

    name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """Of the run folder; null makes one from the time."""
    out: str = "runs"
    """Folder that run folders are made in."""
    problem: tuple[str, ...] = Field(min_length=1)
    """What to search: names, globs over names, or paths of files; a single one may stand alone."""
    problems: ProblemsConfig = Field(default_factory=ProblemsConfig)
    mode: Literal["kernel", "compiled"] = "kernel"
    """`kernel`: problems are searched as they are. `compiled`: each is compiled by torch.compile,
    its generated kernels become the problems, and winners are put back (KernelOPT)."""
    compiled: CompiledConfig = Field(default_factory=CompiledConfig)
    seed: tuple[int, ...] = Field(default=(0,), min_length=1)
    """One search a seed and problem; a single one may stand alone."""
    arm: str | None = None
    """Name of the setting in results; null is `arm_name`'s."""
    device: DeviceKind = "auto"
    """`auto`: CUDA where there is a GPU, else the CPU."""
    deterministic: bool = False
    """One expansion in flight a search, told in the order of its slots: the same tree each time
    that the verdicts are the same."""
    search: SearchConfig = Field(default_factory=MctsConfig)
    programmer: ProgrammerConfig = Field(default_factory=RewriterConfig)
    pipeline: PipelineConfig = Field(default_factory=SingleConfig)
    evaluate: EvaluateConfig = Field(default_factory=EvaluateConfig)
    reward: RewardConfig = Field(default_factory=RewardConfig)
    findings: FindingsConfig = Field(default_factory=FindingsConfig)
    memory: MemoryConfig = Field(default_factory=MemoryConfig)
    tools: ToolsConfig = Field(default_factory=ToolsConfig)
    profile_analysis: Literal["on", "off"] = "off"
    """Whether a model condenses the profile of what is optimised (KernelPro's profiling agent): one
    more call for each such node; only with programmer=openai or vllm."""
    energy: EnergyMode = "off"
    """`measure`: each correct candidate's energy is journalled, and the search does not know.
    `aware`: it breaks ties of speed in the reward, and authors are told."""
    cluster: ClusterConfig = Field(default_factory=ClusterConfig)
    tracker: TrackerConfig = Field(default_factory=NoTrackerConfig)
    keep_best: int = Field(default=3, ge=1)
    """Distinct correct candidates of each problem kept in `best/`."""
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    stop: StopConfig = Field(default_factory=StopConfig)
    fleet: FleetConfig = Field(default_factory=FleetConfig)
    max_in_flight: int | None = Field(default=None, ge=1)
    """Expansions under way over all searches; null: as many as keep every lane busy."""
    max_in_flight_per_search: int | None = Field(default=None, ge=1)
    """Expansions under way in one search; null: all of them where writing is quick (rewriter,
    recorded), else 4, so that a tree hears of some before it asks for more."""

    notes: tuple[str, ...] = ()
    """Lines for the user before a run starts: where an experiment departs from its source."""
    lacks: tuple[str, ...] = ()
    """What an arm cannot do without and kopt does not have: with any of them it does not run, and
    says why."""

    @field_validator("profile_analysis", "energy", mode="before")
    @classmethod
    def _a_word(cls, value: object) -> object:
        # YAML 1.1 reads on and off as truth values.
        return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value

    @model_validator(mode="after")
    def _a_model_for_a_model_s_work(self) -> Self:
        kind = self.programmer.kind
        if self.profile_analysis == "on" and kind not in MODEL_KINDS:
            raise ValueError(f"profile_analysis=on asks a model, and programmer={kind} is none")
        # What a model that called tools has answered is played back as any other answer is.
        calls_tools = (*MODEL_KINDS, "recorded")
        if self.findings.orchestration == "reactive" and kind not in calls_tools:
            raise ValueError(
                "findings.orchestration=reactive lets a model call tools, and "
                f"programmer={kind} is none"
            )
        if self.findings.orchestration == "reactive" and self.findings.feedback != "tools":
            raise ValueError(
                "findings.orchestration=reactive offers tools; "
                f"with findings.feedback={self.findings.feedback} there are none to offer"
            )
        return self

    @model_validator(mode="after")
    def _roles_that_can_be_played(self) -> Self:
        if self.pipeline.kind != "agents":
            return self
        if self.programmer.kind == "rewriter":
            raise ValueError("pipeline=agents asks in words, and programmer=rewriter reads none")
        if self.findings.orchestration == "reactive":
            raise ValueError(
                "findings.orchestration=reactive lets one author call tools; with pipeline=agents "
                "the planner asks: leave it proactive, or take pipeline=single"
            )
        return self

    @model_validator(mode="after")
    def _a_memory_that_can_be(self) -> Self:
        kind = self.programmer.kind
        speechless = ("rewriter",) if self.pipeline.kind == "agents" else SPEECHLESS
        if self.memory.extractor == "model" and kind in speechless:
            raise ValueError(f"memory.extractor=model asks a model, and programmer={kind} is none")
        if self.memory.tracker is not None and kind == "recorded":
            raise ValueError(
                "memory.tracker adds up what runs tried, and programmer=recorded tries nothing new"
            )
        return self

    @field_validator("problem", "seed", mode="before")
    @classmethod
    def _one_may_stand_alone(cls, value: object) -> object:
        return value if isinstance(value, list | tuple) else (value,)

    @field_validator("problem", "seed")
    @classmethod
    def _each_once(cls, values: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(dict.fromkeys(values))

    @property
    def arm_name(self) -> str:
        """The arm: what the user named it, or search and programmer (`mcts-rewriter`)."""
        made = f"{part_label(self.search.kind)}-{part_label(self.programmer.kind)}"
        return self.arm or (made if self.pipeline.kind == "single" else f"{made}-agents")


def load(mapping: Mapping[str, Any]) -> RunConfig:
    """Return the validated configuration of a plain mapping.

    Raises:
        ConfigError: one line for each thing that is wrong, with the key's path, what was
            expected and what was found; close matches for a key that does not exist.
    """
    try:
        config = RunConfig.model_validate(dict(mapping))
    except ValidationError as error:
        raise ConfigError("\n".join(error_lines(error, model=RunConfig))) from None
    take_up(config.evaluate.languages)  # every command that reads a run may meet them in it
    return config


def to_plain(config: RunConfig) -> dict[str, Any]:
    """Return the configuration as plain JSON values; `load` takes it back."""
    return config.model_dump(mode="json")
