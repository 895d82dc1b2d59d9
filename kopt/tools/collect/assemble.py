"""One evidence from what the collectors read: counters, rules, timeline, disassembly, usage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from kopt.evidence import Energy, Evidence, EvidenceLevel, KernelEvidence, Roofline, Rule
from kopt.tools.collect.host_trace import OWN_CODE
from kopt.tools.collect.kineto import TraceReport
from kopt.tools.collect.ncu_raw import NcuLaunch, NcuReport
from kopt.tools.collect.ncu_rules import RulesReport
from kopt.tools.collect.owners import base_name, owner
from kopt.tools.collect.sass import SassReport
from kopt.tools.collect.unreadable import MAX_KERNELS, Remarks
from kopt.tools.collect.usage import Usage
from kopt.tools.energy_proxy import call_energy

T = TypeVar("T")

DURATION = "gpu__time_duration.sum"
REGISTERS = "launch__registers_per_thread"
SHARED = ("launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What was read of one candidate; None and empty where a profiler was not there or failed."""

    device: str
    """The GPU's name."""
    arch: str
    ncu: NcuReport | None = None
    ncu_calls: int = 1
    """Forward calls that ncu's range spans."""
    rules: RulesReport | None = None
    trace: TraceReport | None = None
    sass: SassReport | None = None
    usage: tuple[Usage, ...] = ()
    host_code: SassReport | None = None
    """Of a CPU extension's own functions."""
    roofline: Roofline | None = None
    time_us: float | None = None
    """Median of one call as the evaluation timed it."""
    millijoules: float | None = None
    """Of one call, measured without the idle draw."""
    own: tuple[str, ...] = field(default=())
    """Names of the candidate's entry points; empty: told by the form of the names."""


class Assembled(NamedTuple):
    """The evidence, and lines on what could not be put together."""

    evidence: Evidence
    remarks: tuple[str, ...]


class _Key(NamedTuple):
    """A kernel as it was launched: one name may stand for several kernels, or several shapes."""

    name: str
    block: str
    grid: str


def assemble(collected: Collected) -> Assembled:
    """Return the evidence of what was collected.

    Kernels are ncu's where it ran (one for each name, block and grid), else the timeline's, else
    the functions of the binary. Shares and launches of a call are the timeline's where it has the
    kernel, since ncu slows what it looks at and may have seen some launches only.
    """
    remarks = Remarks()
    level: EvidenceLevel = "static"
    if collected.ncu is not None:
        level, kernels = "ncu", _counted(collected)
    elif collected.trace is not None:
        level, kernels = "timeline", _traced(collected.trace)
    else:
        kernels = [
            KernelEvidence(name=function.name, owner="user", launches=1)
            for function in (collected.sass.functions if collected.sass else ())
        ]
        if collected.host_code is not None:
            kernels = [KernelEvidence(name=OWN_CODE, owner="user", launches=1)]
    if collected.ncu is not None and collected.trace is not None:
        kernels = _with_shares(kernels, collected.trace)
    if len(kernels) > MAX_KERNELS:
        remarks.note(f"only the first {MAX_KERNELS} of {len(kernels)} kernels are kept")
        kernels = kernels[:MAX_KERNELS]
    kernels = _with_binaries(kernels, collected, remarks)
    if collected.host_code is not None:
        kernels = _with_host_code(kernels, collected.host_code)
    evidence = Evidence(
        device=collected.device,
        arch=collected.arch,
        level=level,
        time_us=collected.time_us,
        kernels=tuple(kernels),
        timeline=None if collected.trace is None else collected.trace.timeline,
        roofline=collected.roofline,
    )
    if collected.ncu is not None or collected.millijoules is not None:
        energy = call_energy(evidence, millijoules=collected.millijoules)
        evidence = replace(evidence, energy=None if energy == Energy() else energy)
    told = [part.remarks for part in (collected.ncu, collected.rules, collected.trace) if part]
    binaries = (collected.sass, collected.host_code)
    read = [line for part in binaries if part is not None for line in part.remarks]
    return Assembled(
        evidence, (*(line for lines in told for line in lines), *read, *remarks.lines())
    )


def _counted(collected: Collected) -> list[KernelEvidence]:
    """Kernels by ncu: the mean of a launch of each counter that every launch has."""
    assert collected.ncu is not None
    rules = _rules_by_kernel(collected.rules)
    launches: dict[_Key, list[NcuLaunch]] = {}
    for launch in collected.ncu.launches:
        launches.setdefault(_Key(launch.kernel, launch.block, launch.grid), []).append(launch)
    kernels = []
    for key, same in launches.items():
        metrics = {
            name: _mean([launch.metrics.get(name) for launch in same]) for name in same[0].metrics
        }
        per_call = max(1, round(len(same) / collected.ncu_calls))
        duration_ns = metrics.get(DURATION)
        registers = metrics.get(REGISTERS)
        shared = [metrics.get(name) for name in SHARED]
        known = [value for value in shared if value is not None]
        kernels.append(
            KernelEvidence(
                name=key.name,
                owner=owner(key.name, own=collected.own),
                launches=per_call,
                time_us=None if duration_ns is None else duration_ns * per_call / 1000.0,
                metrics=metrics,
                registers=None if registers is None else round(registers),
                smem_bytes=round(sum(known)) if len(known) == len(shared) else None,
                rules=rules.get(key, ()),
            )
        )
    times = [kernel.time_us for kernel in kernels if kernel.time_us is not None]
    if len(times) < len(kernels) or not sum(times):
        return kernels
    return [
        replace(kernel, share=time_us / sum(times))
        for kernel, time_us in zip(kernels, times, strict=True)
    ]


def _rules_by_kernel(report: RulesReport | None) -> dict[_Key, tuple[Rule, ...]]:
    found: dict[_Key, tuple[Rule, ...]] = {}
    for launch in report.launches if report is not None else ():
        found.setdefault(_Key(launch.kernel, launch.block, launch.grid), launch.rules)
    return found


def _traced(trace: TraceReport) -> list[KernelEvidence]:
    return [
        KernelEvidence(
            name=kernel.name,
            owner=kernel.owner,
            launches=kernel.launches,
            time_us=kernel.time_us,
            share=kernel.share,
            registers=kernel.registers,
            smem_bytes=kernel.smem_bytes,
        )
        for kernel in trace.kernels
    ]


def _with_shares(kernels: Sequence[KernelEvidence], trace: TraceReport) -> list[KernelEvidence]:
    """Launches, time and share by the timeline, for kernels that are one there and one here.

    Two profilers may spell a name differently: it counts whole (instances of one template), and by
    the function's own name where that is one on both sides.
    """
    traced = _traced(trace)
    found: dict[int, int] = {}
    for spelled in (_spelling, base_name):
        here = _single_places(spelled(kernel.name) for kernel in kernels)
        there = _single_places(spelled(kernel.name) for kernel in traced)
        for name in here.keys() & there.keys():
            found.setdefault(here[name], there[name])
    merged = []
    for at, kernel in enumerate(kernels):
        if at in found:
            same = traced[found[at]]
            kernel = replace(kernel, launches=same.launches, time_us=same.time_us, share=same.share)
        merged.append(kernel)
    # What ncu has under a name that fits several of the timeline's is not told twice.
    taken = {base_name(kernel.name) for at, kernel in enumerate(kernels) if at not in found}
    rest = [
        kernel
        for at, kernel in enumerate(traced)
        if at not in found.values() and base_name(kernel.name) not in taken
    ]
    return [*merged, *rest]


def _spelling(name: str) -> str:
    """A name without what profilers write differently: spaces, the anonymous namespace."""
    plain = name.replace("(anonymous namespace)", "").replace("<unnamed>", "")
    return "".join(plain.split())


def _single_places(names: Iterable[str]) -> dict[str, int]:
    """Name to its place, for names that occur once."""
    places: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        places.setdefault(name, []).append(at)
    return {name: found[0] for name, found in places.items() if len(found) == 1}


def _with_binaries(
    kernels: Sequence[KernelEvidence], collected: Collected, remarks: Remarks
) -> list[KernelEvidence]:
    functions = collected.sass.functions if collected.sass is not None else ()
    counts = _unambiguous(((each.name, each.counts) for each in functions), "disassembly", remarks)
    usages = _unambiguous(((each.name, each) for each in collected.usage), "usage", remarks)
    found = []
    for kernel in kernels:
        own_counts = counts.get(kernel.name) or counts.get(base_name(kernel.name)) or {}
        usage = usages.get(kernel.name) or usages.get(base_name(kernel.name))
        if usage is not None:
            kernel = replace(
                kernel,
                registers=usage.registers if kernel.registers is None else kernel.registers,
                spill_bytes=usage.spill_bytes,
                stack_bytes=usage.stack_bytes,
                smem_bytes=usage.smem_bytes if kernel.smem_bytes is None else kernel.smem_bytes,
            )
        found.append(replace(kernel, sass=dict(own_counts)))
    return found


def _with_host_code(kernels: list[KernelEvidence], code: SassReport) -> list[KernelEvidence]:
    """Give the candidate's longest entry what all its functions hold: no trace names them."""
    own = [at for at, kernel in enumerate(kernels) if kernel.owner == "user"]
    if not own:
        return kernels
    counts: dict[str, int] = {}
    for function in code.functions:
        for name, count in function.counts.items():
            counts[name] = counts.get(name, 0) + count
    at = max(own, key=lambda each: kernels[each].share or 0.0)
    kernels[at] = replace(kernels[at], sass=dict(sorted(counts.items())))
    return kernels


def _unambiguous(pairs: Iterable[tuple[str, T]], what: str, remarks: Remarks) -> dict[str, T]:
    """Values by full name, and by base name where just one function has it."""
    by_name = dict(pairs)
    by_base: dict[str, list[T]] = {}
    for name, value in by_name.items():
        by_base.setdefault(base_name(name), []).append(value)
    for base, values in by_base.items():
        if len(values) == 1:
            by_name.setdefault(base, values[0])
        else:
            remarks.note(
                f"{len(values)} functions are called {base[:80]}: their {what} is left out"
            )
    return by_name


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
