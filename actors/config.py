"""The actors' sections of the configuration. Imports pydantic and nothing heavier."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from kopt.evaluation import Track
from kopt.ladder import LadderName
from kopt.plugin_kind import PluginKind
from kopt.reward import RewardBaseline
from kopt.section import Section
from kopt.timing import TimingProtocol

DeviceKind = Literal["auto", "cpu", "cuda"]
CacheMode = Literal["off", "read", "on"]


def _word(value: object) -> object:
    """Return `on` and `off` as YAML meant them: it reads both as truth values."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


class TimeoutConfig(Section):
    """Deadlines of the stages, in seconds; a stage that runs over costs its candidate alone."""

    build_s: float = Field(default=180.0, gt=0)
    """Compile what the candidate's import compiles."""
    load_s: float = Field(default=60.0, gt=0)
    """Import the candidate, construct ModelNew and load its weights."""
    correctness_s: float = Field(default=60.0, gt=0)
    """One forward call on one input set."""
    timing_s: float = Field(default=120.0, gt=0)
    """One block of timed calls."""
    reference_s: float = Field(default=600.0, gt=0)
    """Load, run, or compile the reference."""


class TimingConfig(Section):
    """How speed is measured (DESIGN §5.4)."""

    protocol: TimingProtocol = "abba"
    """`abba` races candidate and baseline in interleaved pairs; `do_bench` and `kernelbench` take
    them one after the other, to compare with published figures (kopt.timing_protocol)."""
    min_pairs: int = Field(default=10, ge=4)
    """Interleaved pairs before the race may stop."""
    max_pairs: int = Field(default=40, ge=4)
    """Interleaved pairs at most. Fewer than ten support no speed-up beyond doubt (kopt.racing)."""
    block_ms: float = Field(default=6.0, gt=0)
    """Least time of one block of calls, what passes beside them included."""
    clock_tolerance: float = Field(default=0.10, gt=0)
    """Relative disagreement of the two clocks above which a timing is not believed."""


class EvaluateConfig(Section):
    """How a candidate is judged."""

    ladder: LadderName = "strict"
    """Numeric policy (DESIGN §5.3)."""
    track: Track = "anything"
    """What may do the work; recorded in every result."""
    min_own_share: float = Field(default=0.5, ge=0.0, le=1.0)
    """On the track `kernels`: least share of the device's time in the candidate's own kernels, 0 to
    1. Half, since the track asks who does the work: a kernel for an epilogue beside a library's
    product is below it (exploits 54), a kernel that leaves copies and fills to torch above."""
    module_mode: Literal["train", "eval"] = "train"
    """KernelBench runs modules as constructed, in training mode."""
    baseline: RewardBaseline = "best"
    """What the speed-up is against: `best` is the faster of eager and torch.compile; `given` is
    the kernel that a problem comes with, `best` for those that come with none."""
    compile: bool = True
    """Whether torch.compile is measured as a baseline."""
    max_autotune: bool = False
    """Whether torch.compile with max-autotune is measured too."""
    trials: int = Field(default=2, ge=1)
    """Secret seeds for each input family."""
    memory_gib: float | None = Field(default=None, gt=0)
    """Host memory a candidate may use; None leaves it half of what is free."""
    cache: Annotated[CacheMode, BeforeValidator(_word)] = "on"
    """Verdicts of earlier runs: `on` uses and keeps them, `read` uses them, `off` neither. A run
    judges no text twice whatever it says; `kopt eval` and `kopt verify` always judge."""
    languages: tuple[PluginKind, ...] = ()
    """Languages beside kopt's own that candidates may be written in: `package/name` (entry-point
    group `kopt.languages`) or `path/to/mine.py:NAME`, on every machine of the run. A single one may
    stand alone."""
    secret: int | None = None
    """Seed of the hidden inputs; None draws one for the run. Set it only to debug."""
    timeouts: TimeoutConfig = TimeoutConfig()
    timing: TimingConfig = TimingConfig()

    @field_validator("languages", mode="before")
    @classmethod
    def _one_may_stand_alone(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value


class ClusterConfig(Section):
    """The Ray cluster."""

    address: str = "local"
    """`local` starts one of our own; `auto` or `ray://host:port` joins one."""
    num_cpus: int | None = Field(default=None, ge=1)
    """Cores given to a local cluster; None for all."""
    devices: int | None = Field(default=None, ge=1)
    """Device workers, those whose nodes are yet to join included; None: one for each GPU that is
    there, or one on a CPU."""
    build_workers: int | None = Field(default=None, ge=1)
    """Builds at a time; None: one for each two cores, at least one; on a CPU, where they stand
    still while anything is timed, at least two."""
    programmer_workers: int = Field(default=1, ge=1)
    """Processes of a programmer that runs here (rewriter)."""
    object_store_mb: int = Field(default=200, ge=80)
    """Of a local cluster, in MB."""
    in_flight: int | None = Field(default=None, ge=1)
    """Candidates on one device at a time: verified beside each other, timed one by one. None: three
    on a GPU, where each holds half a GiB of context, one on a CPU."""
    warm_children: int | None = Field(default=None, ge=0)
    """Processes kept ready on each device for candidates. None: one more than are in flight on a
    GPU, one on a CPU."""
    sessions: int | None = Field(default=None, ge=1)
    """Problems kept ready on each device: reference, hidden inputs, baselines. None: six on a GPU,
    three on a CPU; fewer where memory runs short."""
    max_retries: int = Field(default=2, ge=0)
    """How often work whose worker died is tried elsewhere."""
