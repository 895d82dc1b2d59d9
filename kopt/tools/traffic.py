"""Sums over the kernels of a call, of counters that are known for every launch or for none."""

from __future__ import annotations

from kopt.evidence import Evidence

DRAM_READ = "dram__bytes_read.sum"
DRAM_WRITE = "dram__bytes_write.sum"


def call_total(evidence: Evidence, counter: str) -> float | None:
    """Return a counter's sum over all launches of a call; None where a kernel's is unknown.

    A kernel's counters are means of a launch: each counts as often as it was launched.
    """
    values = [(kernel.metrics.get(counter), kernel.launches) for kernel in evidence.kernels]
    known = [value * launches for value, launches in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None


def dram_bytes(evidence: Evidence) -> float | None:
    """Return the bytes that a call read from and wrote to DRAM; None where unknown."""
    read, written = call_total(evidence, DRAM_READ), call_total(evidence, DRAM_WRITE)
    return None if read is None or written is None else read + written
