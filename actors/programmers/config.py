"""The programmers' section of the configuration: one class each, told apart by `kind`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator

from kopt.actors.programmers.ensemble_config import EnsembleConfig
from kopt.actors.programmers.openai_config import OpenAIConfig
from kopt.actors.programmers.programmer_section import ProgrammerSection
from kopt.actors.programmers.tools_config import AUTO, OFF
from kopt.actors.programmers.vllm_config import VllmConfig
from kopt.plugin_kind import PluginKind
from kopt.section import kind_of


class RewriterConfig(ProgrammerSection):
    """The programmer that needs no model."""

    kind: Literal["rewriter"] = "rewriter"
    fold: Literal["call", "cached"] = "call"
    """When weights are folded: at every call, or once and again where one has changed. Speed-ups of
    the two do not compare."""


class RecordedConfig(ProgrammerSection):
    """The answers of an earlier run, again: keyed by problem, arm, seed, expansion ordinal."""

    kind: Literal["recorded"] = "recorded"
    run: str = Field(min_length=1)
    """Folder of the run, or of a multirun: then its job of the same arm is played."""
    arm: str | None = None
    """Which of its arms; null: the run's only one, or the one named as this run's."""
    verdicts: bool = False
    """Take the verdicts of its candidates from the run as well, so that a GPU's run replays
    anywhere; a candidate without one is judged here."""


class MailboxConfig(ProgrammerSection):
    """A person or an outside agent answers through files."""

    kind: Literal["mailbox"] = "mailbox"
    folder: str | None = None
    """Where prompts and answers lie; null: `mailbox/` in the run folder."""
    poll_s: float = Field(default=0.5, gt=0)
    """Seconds between two looks at the answers."""
    settle_s: float = Field(default=2.0, ge=0)
    """An answer that is not whole is taken for what it is only once it has not changed for so
    long."""
    deadline_s: float | None = Field(default=None, gt=0)
    """Seconds after which an unanswered prompt is given up; null waits."""
    wait_s: float | None = Field(default=None, ge=0)
    """Seconds after which an unanswered prompt is left for a later sitting. Once nothing else is
    left to do the run is suspended (exit 75), and `kopt resume` takes what was answered meanwhile;
    0: takes what lies there and waits for nobody. null waits."""
    open_prompts: int = Field(default=8, ge=1)
    """Prompts laid out at once, about."""
    cutlass: str = AUTO
    """Whose demands stand in the prompts where candidates are for a GPU, as
    programmer.tools.cutlass of a model: `auto`, `off`, or a checkout."""

    @field_validator("cutlass", mode="before")
    @classmethod
    def _a_word(cls, value: object) -> object:
        return OFF if value is False else value  # YAML 1.1 reads off as a truth value

    @property
    def expansions_at_once(self) -> int:
        """As many as prompts."""
        return self.open_prompts

    def place(self, run_dir: Path) -> Path:
        """Return the mailbox's folder.

        Args:
            run_dir: of the run.
        """
        return run_dir / "mailbox" if self.folder is None else Path(self.folder).expanduser()


class PluginProgrammerConfig(ProgrammerSection):
    """A programmer of another package (group `kopt.programmers`), or of a file of yours."""

    kind: PluginKind
    """`package/name`, the name of the entry point, or `path/to/mine.py:NAME`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Its own settings; its factory checks them."""


ProgrammerConfig = Annotated[
    Annotated[RewriterConfig, Tag("rewriter")]
    | Annotated[OpenAIConfig, Tag("openai")]
    | Annotated[VllmConfig, Tag("vllm")]
    | Annotated[EnsembleConfig, Tag("ensemble")]
    | Annotated[RecordedConfig, Tag("recorded")]
    | Annotated[MailboxConfig, Tag("mailbox")]
    | Annotated[PluginProgrammerConfig, Tag("plugin")],
    Discriminator(kind_of),
]
"""Any programmer's section."""
