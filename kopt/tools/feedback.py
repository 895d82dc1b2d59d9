"""What of the evidence is told to whoever writes the next version: the arms of the ablation.

`tools`: findings (KernelPro). `rules`: throughputs and the three of NVIDIA's rules with the
greatest estimate (KernelOPT §4.2). `raw`: about fifty counters by category, uninterpreted
(KernelPro's ablation, where they did harm). `none`: nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from kopt.evidence import Evidence, KernelEvidence, Rule, Tier
from kopt.tools.counters import STALL_REASONS, is_counted, stall_counter
from kopt.tools.diagnosis import MAX_FINDINGS, Diagnosis, diagnose
from kopt.tools.guards import DRAM_PCT, ISSUE_ACTIVE, MEMORY_PCT, SM_PCT, kernels_worth
from kopt.tools.roofline import tier

FeedbackMode = Literal["tools", "rules", "raw", "none"]
FEEDBACK_MODES: tuple[FeedbackMode, ...] = get_args(FeedbackMode)
TOP_RULES = 3
MAX_KERNELS = 4
"""Kernels that counters or rules are told of."""

RAW_COUNTERS: dict[str, tuple[str, ...]] = {
    "compute": (
        SM_PCT,
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
        "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
        ISSUE_ACTIVE,
        "smsp__inst_executed.sum",
        "smsp__thread_inst_executed_per_inst_executed.ratio",
    ),
    "memory": (
        "gpu__time_duration.sum",
        MEMORY_PCT,
        DRAM_PCT,
        "l1tex__throughput.avg.pct_of_peak_sustained_active",
        "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__bytes_read.sum",
        "dram__bytes_write.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio",
        "l1tex__t_sector_hit_rate.pct",
        "lts__t_sector_hit_rate.pct",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
        "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
        "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    ),
    "occupancy": (
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "sm__maximum_warps_per_active_cycle_pct",
        "smsp__warps_eligible.avg.per_cycle_active",
        "launch__registers_per_thread",
        "launch__shared_mem_per_block_allocated",
        "launch__occupancy_limit_registers",
        "launch__occupancy_limit_shared_mem",
        "launch__occupancy_limit_warps",
        "launch__occupancy_limit_blocks",
        "launch__waves_per_multiprocessor",
        "launch__grid_size",
        "launch__block_size",
    ),
    "stalls": tuple(
        stall_counter(reason)
        for reason in STALL_REASONS
        if reason not in ("misc", "sleeping", "drain", "dispatch_stall", "imc_miss", "tex_throttle")
    ),
}
"""Category to its counters, in the paper's four categories: 52 together."""

KEY_COUNTERS: dict[str, tuple[str, ...]] = {
    "compute": (SM_PCT, ISSUE_ACTIVE),
    "memory": (MEMORY_PCT, DRAM_PCT),
    "occupancy": (
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "launch__registers_per_thread",
    ),
}
"""The few that are told beside findings, so that these can be judged."""


class CounterRow(NamedTuple):
    """One counter of one kernel."""

    category: str
    name: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCounters:
    """Counters of one kernel that are told; unknown ones are left out."""

    kernel: str
    rows: tuple[CounterRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRules:
    """What KernelOPT tells of one kernel."""

    kernel: str
    tier: Tier | None
    """None where a throughput is unknown."""
    compute_pct: float | None
    memory_pct: float | None
    registers: float | None
    time_us: float | None
    rules: tuple[Rule, ...]
    """The three with the greatest estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What is told, in one of the modes; what the mode does not tell is empty."""

    mode: FeedbackMode
    diagnosis: Diagnosis | None = None
    counters: tuple[KernelCounters, ...] = ()
    rules: tuple[KernelRules, ...] = ()


def feedback(
    evidence: Evidence,
    *,
    mode: FeedbackMode = "tools",
    max_findings: int | None = MAX_FINDINGS,
    diagnosis: Diagnosis | None = None,
) -> Feedback:
    """Return what is told of the evidence.

    Args:
        evidence: what was measured.
        mode: the arm.
        max_findings: most findings in `tools`; None: all.
        diagnosis: of this evidence, where it was made before; None: the tools are asked.

    Raises:
        ConfigError: in `tools`, an entry point names no tool.
    """
    if mode == "tools":
        return Feedback(
            mode=mode,
            diagnosis=diagnosis or diagnose(evidence, max_findings=max_findings),
            counters=_counters(evidence, KEY_COUNTERS),
        )
    if mode == "rules":
        return Feedback(mode=mode, rules=tuple(map(_kernel_rules, _main_kernels(evidence))))
    if mode == "raw":
        return Feedback(mode=mode, counters=_counters(evidence, RAW_COUNTERS))
    return Feedback(mode=mode)


def top_rules(rules: tuple[Rule, ...], *, most: int = TOP_RULES) -> tuple[Rule, ...]:
    """Return the rules with advice and an estimate, the greatest estimate first.

    Equal estimates keep ncu's order.
    """
    advice = [rule for rule in rules if rule.kind == "OPT" and rule.speedup_pct is not None]
    return tuple(sorted(advice, key=lambda rule: -(rule.speedup_pct or 0.0))[:most])


def _main_kernels(evidence: Evidence) -> list[KernelEvidence]:
    """The candidate's kernels worth telling of, those with the greatest share first."""
    worth = kernels_worth(evidence)
    return sorted(worth, key=lambda kernel: -(kernel.share or 0.0))[:MAX_KERNELS]


def _counters(
    evidence: Evidence, categories: dict[str, tuple[str, ...]]
) -> tuple[KernelCounters, ...]:
    told = []
    for kernel in _main_kernels(evidence):
        rows = tuple(
            CounterRow(category, name, value)
            for category, names in categories.items()
            for name in names
            if (value := kernel.metrics.get(name)) is not None and is_counted(name, value)
        )
        if rows:
            told.append(KernelCounters(kernel=kernel.name, rows=rows))
    return tuple(told)


def _kernel_rules(kernel: KernelEvidence) -> KernelRules:
    compute_pct, memory_pct = kernel.metrics.get(SM_PCT), kernel.metrics.get(MEMORY_PCT)
    in_tier: Tier | None = None
    if compute_pct is not None and memory_pct is not None:
        in_tier = tier(compute_pct, memory_pct=memory_pct)
    return KernelRules(
        kernel=kernel.name,
        tier=in_tier,
        compute_pct=compute_pct,
        memory_pct=memory_pct,
        registers=kernel.metrics.get("launch__registers_per_thread", kernel.registers),
        time_us=kernel.time_us,
        rules=top_rules(kernel.rules),
    )
