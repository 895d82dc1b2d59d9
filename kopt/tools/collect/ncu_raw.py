"""Counters of each launch from Nsight Compute's raw page (`--csv --page raw`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from kopt.tools.collect.figures import in_base_units, number
from kopt.tools.collect.ncu_table import KERNEL_NAME, NcuTable, read_table
from kopt.tools.collect.unreadable import MAX_LAUNCHES, Remarks
from kopt.tools.counters import (
    ALIASES,
    CORE_COUNTERS,
    DEVICE_COUNTERS,
    STALL_REASONS,
    is_counted,
    stall_counter,
)

KEPT_COUNTERS = frozenset({*CORE_COUNTERS, *DEVICE_COUNTERS})
DEVICE_NAME = "device__attribute_display_name"

_INSTRUCTIONS = "smsp__inst_executed.sum"
_THREADS = "smsp__thread_inst_executed_per_inst_executed.ratio"
_THREAD_INSTRUCTIONS = "smsp__thread_inst_executed.sum"


@dataclass(frozen=True, slots=True, kw_only=True)
class NcuLaunch:
    """One launch."""

    ordinal: int
    """ncu's ID."""
    kernel: str
    block: str
    """As ncu prints it: `(128, 1, 1)`."""
    grid: str
    metrics: Mapping[str, float | None]
    """Counter to value in base units; None where it is unknown."""
    process: int | None = None
    """Id of the process that launched it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NcuReport:
    """The launches of one profile."""

    launches: tuple[NcuLaunch, ...]
    device: str | None = None
    """The GPU's name, where the page has it."""
    arch: str | None = None
    """`sm_90`, from the column CC."""
    remarks: tuple[str, ...] = ()
    """On what was passed over."""


def parse_raw(text: str, *, keep: Collection[str] = KEPT_COUNTERS) -> NcuReport:
    """Return the counters of each launch on a raw page.

    Two counters that a section set brings in another form are worked out where the plain ones are
    missing: a stall's share of the active warps is its warps per issue ÷ the sum over all reasons;
    instructions of threads are those of warps × threads per instruction.

    Args:
        text: ncu's output, with its log lines.
        keep: counters that are kept; a full set has two thousand.

    Raises:
        UnreadableProfile: there is no table, or it has no launches.
    """
    remarks = Remarks()
    table = read_table(text, remarks=remarks)
    at = {name: index for index, name in enumerate(table.columns)}
    rows = table.rows
    if len(rows) > MAX_LAUNCHES:
        remarks.note(f"only the first {MAX_LAUNCHES} of {len(rows)} launches were read")
        rows = rows[:MAX_LAUNCHES]
    launches = tuple(
        NcuLaunch(
            ordinal=int(row[0]),
            kernel=row[at[KERNEL_NAME]],
            block=_cell(row, at, "Block Size"),
            grid=_cell(row, at, "Grid Size"),
            metrics=_metrics(row, table, at, keep),
            process=int(process) if (process := _cell(row, at, "Process ID")).isdigit() else None,
        )
        for row in rows
    )
    capability = _cell(rows[0], at, "CC").replace(".", "")
    return NcuReport(
        launches=launches,
        device=_cell(rows[0], at, DEVICE_NAME) or None,
        arch=f"sm_{capability}" if capability.isdigit() else None,
        remarks=remarks.lines(),
    )


def of_process(report: NcuReport, process: int) -> NcuReport | None:
    """Return what one process of several launched; None where it launched nothing."""
    launches = tuple(each for each in report.launches if each.process == process)
    return replace(report, launches=launches) if launches else None


def _metrics(
    row: tuple[str, ...], table: NcuTable, at: Mapping[str, int], keep: Collection[str]
) -> dict[str, float | None]:
    metrics: dict[str, float | None] = {}
    for name, index in at.items():
        kept = ALIASES.get(name, name)
        if kept not in keep:
            continue
        value = number(row[index])
        based = None
        if value is not None and is_counted(kept, value):
            based = in_base_units(value, table.units[index])
        if based is not None or kept not in metrics:
            metrics[kept] = based
    metrics.update(_derived_stalls(row, at, keep, metrics))
    if _THREAD_INSTRUCTIONS in keep and metrics.get(_THREAD_INSTRUCTIONS) is None:
        instructions, threads = metrics.get(_INSTRUCTIONS), metrics.get(_THREADS)
        if instructions is not None and threads is not None:
            metrics[_THREAD_INSTRUCTIONS] = instructions * threads
    return metrics


def _derived_stalls(
    row: tuple[str, ...],
    at: Mapping[str, int],
    keep: Collection[str],
    metrics: Mapping[str, float | None],
) -> dict[str, float]:
    """Stall shares from warps per issue, if every reason is known so and the plain form is not."""
    wanted = [reason for reason in STALL_REASONS if metrics.get(stall_counter(reason)) is None]
    if not wanted or stall_counter(wanted[0]) not in keep:
        return {}
    ratios: dict[str, float] = {}
    for reason in STALL_REASONS:
        name = f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
        value = number(row[at[name]]) if name in at else None
        if value is None:
            return {}
        ratios[reason] = value
    total = sum(ratios.values())
    if total <= 0:
        return {}
    return {stall_counter(reason): 100.0 * ratios[reason] / total for reason in wanted}


def _cell(row: tuple[str, ...], at: Mapping[str, int], name: str) -> str:
    return row[at[name]].strip() if name in at else ""
