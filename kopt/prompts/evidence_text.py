"""Evidence in words: the binary, the timeline, the class of the bottleneck, counters, energy.

Names of kernels and text of rules come from what was profiled: they are cut, and stand as code.
Figures that are unknown are left out; nothing is printed as 0 that was not measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from kopt.evidence import Evidence, KernelEvidence, KernelOwner, Timeline
from kopt.prompts.excerpts import short_line
from kopt.tools.collect.host_code import fma_share, vector_bits
from kopt.tools.energy_notes import instructions_in_binary
from kopt.tools.feedback import KernelCounters, KernelRules
from kopt.tools.guards import MATRIX_MNEMONICS
from kopt.tools.roofline import disagreement
from kopt.tools.view import sass_count

MAX_KERNELS = 8
"""Kernels of a call that are named."""
MAX_NAME = 80
ONE_ELEMENT_BITS = 32
"""What `vector_bits` says of scalar arithmetic."""
MAX_RULE = 400
"""Characters of a rule's text."""

OWNERS: dict[KernelOwner, str] = {
    "user": "the version's own",
    "library": "a library's",
    "aten": "PyTorch's own",
}
LAUNCHES = ("launch", "launches")
CALLS = ("call", "calls")

_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("tensor", MATRIX_MNEMONICS),
    ("fma", ("FFMA", "HFMA2", "DFMA")),
    ("global loads", ("LDG", "LDG.128", "LDG.64")),
    ("global stores", ("STG", "STG.128", "STG.64")),
    ("async copies", ("LDGSTS", "UTMALDG", "UTMASTG", "UBLKCP")),
    ("shared", ("LDS", "STS", "LDSM", "STSM")),
    ("local (spills, arrays)", ("LDL", "STL")),
    ("special functions", ("MUFU",)),
    ("barriers", ("BAR", "WARPSYNC", "SYNCS")),
    ("calls", ("CALL",)),
)
"""What is told of a binary, to its mnemonics."""


def named(kernel: str) -> str:
    """Return a kernel's name as code, on one line, cut where it is long."""
    plain = " ".join(kernel.replace("`", "'").split())
    return f"`{short_line(plain, max_characters=MAX_NAME)}`"


def kernels_text(evidence: Evidence) -> str:
    """Return a line for each kernel: whose it is, launches, time, share; the longest first.

    On a CPU they are operations, and called.
    """
    ordered = sorted(evidence.kernels, key=lambda kernel: -(kernel.share or 0.0))
    run = LAUNCHES if evidence.arch.startswith("sm_") else CALLS
    lines = [_kernel_line(kernel, run) for kernel in ordered[:MAX_KERNELS]]
    if len(ordered) > MAX_KERNELS:
        lines.append(f"- … {len(ordered) - MAX_KERNELS} more kernels …")
    return "\n".join(lines)


def sass_text(evidence: Evidence) -> str:
    """Return what the candidate's binaries hold; empty where none was read."""
    lines = []
    for kernel in evidence.kernels:
        if kernel.owner != "user" or not kernel.sass:
            continue
        parts = [f"{instructions_in_binary(kernel)} instructions"]
        for label, mnemonics in _GROUPS:
            counted = [(name, sass_count(kernel, name)) for name in mnemonics]
            shown = [f"{name} {count}" for name, count in counted if count]
            if shown:
                parts.append(f"{label}: {', '.join(shown)}")
            elif label == "tensor":
                parts.append("no tensor instruction")
        if kernel.spill_bytes is not None:
            parts.append(f"{kernel.spill_bytes} bytes spilled")
        lines.append(f"- {named(kernel.name)}: {'; '.join(parts)}")
    return "\n".join(lines[:MAX_KERNELS])


def host_code_text(evidence: Evidence) -> str:
    """Return what the candidate's code for a CPU holds; empty where none was read."""
    lines = []
    for kernel in evidence.kernels:
        if kernel.owner != "user" or not kernel.sass:
            continue
        counts = dict(kernel.sass)
        parts = [f"{instructions_in_binary(kernel)} instructions"]
        bits, fused = vector_bits(counts), fma_share(counts)
        if bits is None:
            parts.append("no floating-point arithmetic")
        else:
            parts.append(
                "floating-point arithmetic on one element at a time"
                if bits == ONE_ELEMENT_BITS
                else f"floating-point arithmetic on vectors of up to {bits} bits"
            )
        if fused is not None:
            parts.append(f"{fused:.0%} of it multiply-adds")
        calls = sum(count for name, count in counts.items() if name in ("call", "bl", "blr"))
        if calls:
            parts.append(_counted(calls, "call", "calls"))
        lines.append(f"- {named(kernel.name)}: {'; '.join(parts)}")
    return "\n".join(lines[:MAX_KERNELS])


def timeline_text(timeline: Timeline) -> str:
    """Return the timeline's figures in a few sentences."""
    parts = [f"One call takes {timeline.e2e_us:.1f} us end to end under the profiler"]
    if timeline.launch_overhead_pct is not None:
        parts.append(f"the device is idle for {timeline.launch_overhead_pct:.0f} % of it")
    if timeline.launches is not None:
        each = ""
        if timeline.avg_launch_ns is not None:
            each = f" ({timeline.avg_launch_ns / 1000:.1f} us of host time each)"
        parts.append(f"{_counted(timeline.launches, 'launch', 'launches')}{each}")
    if timeline.syncs is not None:
        blocked = "" if not timeline.sync_us else f" ({timeline.sync_us:.0f} us)"
        parts.append(f"{_counted(timeline.syncs, 'blocking call', 'blocking calls')}{blocked}")
    if timeline.gaps_us:
        longest, total = max(timeline.gaps_us), sum(timeline.gaps_us)
        parts.append(
            f"{_counted(len(timeline.gaps_us), 'gap', 'gaps')}, {total:.0f} us together, "
            f"{longest:.0f} us at most"
        )
    if timeline.memcpy_us:
        parts.append(f"{timeline.memcpy_us:.1f} us of copies")
    if timeline.memset_us:
        parts.append(f"{timeline.memset_us:.1f} us of fills")
    return "; ".join(parts) + "."


def roofline_text(evidence: Evidence) -> str:
    """Return the class of the bottleneck and what it rests on; empty where nothing is known.

    A speed of light that a call beats is none: a CPU's roofs are measured, on a busy host too low,
    and what fits into a cache need not come from memory.
    """
    roofline, timeline = evidence.roofline, evidence.timeline
    if roofline is None:
        return ""
    lines = []
    if roofline.bottleneck is not None:
        sure = f", {roofline.confidence} confidence" if roofline.confidence else ""
        lines.append(
            f"Bottleneck of the problem, as the reference computes it: {roofline.bottleneck}{sure}."
        )
    if roofline.bytes is not None and roofline.flops is not None:
        lines.append(
            f"Inputs, weights and outputs are {_scaled(roofline.bytes)}B, each moved once; it "
            f"computes {_scaled(roofline.flops)}FLOP."
        )
    if roofline.intensity is not None and roofline.ridge is not None:
        lines.append(
            f"It has {roofline.intensity:.3g} FLOP per byte; the roofs meet at "
            f"{roofline.ridge:.3g} ({roofline.precision or 'the precision in force'})."
        )
    lines.append(disagreement(roofline))
    is_beaten = timeline is not None and timeline.e2e_us < (roofline.sol_us or 0.0)
    if roofline.sol_us is not None and not is_beaten:
        lines.append(f"Speed of light: {roofline.sol_us:.1f} us.")
    return " ".join(filter(None, lines))


def counters_text(kernels: Sequence[KernelCounters]) -> str:
    """Return counters by kernel and category, a line each."""
    lines = []
    for kernel in kernels:
        lines.append(f"Kernel {named(kernel.kernel)}:")
        categories = dict.fromkeys(row.category for row in kernel.rows)
        for category in categories:
            shown = [
                f"{row.name} = {row.value:g}" for row in kernel.rows if row.category == category
            ]
            lines.append(f"- {category}: {', '.join(shown)}")
    return "\n".join(lines)


def rules_text(kernels: Sequence[KernelRules]) -> str:
    """Return what KernelOPT's planner reads: throughputs, tier, and the first rules."""
    lines = []
    for kernel in kernels:
        figures = [
            ("compute throughput", kernel.compute_pct, " %"),
            ("memory throughput", kernel.memory_pct, " %"),
            ("time", kernel.time_us, " us"),
            ("registers a thread", kernel.registers, ""),
        ]
        shown = [f"{name} {value:.4g}{unit}" for name, value, unit in figures if value is not None]
        in_tier = f"{kernel.tier}; " if kernel.tier else ""
        lines.append(f"Kernel {named(kernel.kernel)}: {in_tier}{', '.join(shown)}")
        for rank, rule in enumerate(kernel.rules, start=1):
            scope = f", {rule.speedup_scope}" if rule.speedup_scope else ""
            text = short_line(rule.message, max_characters=MAX_RULE)
            lines.append(f"{rank}. {rule.name} (estimated {rule.speedup_pct:.4g} %{scope}): {text}")
    return "\n".join(lines)


def _kernel_line(kernel: KernelEvidence, run: tuple[str, str]) -> str:
    parts = [OWNERS[kernel.owner], _counted(kernel.launches, *run)]
    if kernel.time_us is not None:
        parts.append(f"{kernel.time_us:.1f} us")
    if kernel.share is not None:
        parts.append(f"{100 * kernel.share:.0f} %")
    return f"- {named(kernel.name)}: {', '.join(parts)}"


def _scaled(number: float) -> str:
    """Return a number in three digits with its prefix, `1.23 G`; a unit follows."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {prefix}"
    return f"{number:.3g} "


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
