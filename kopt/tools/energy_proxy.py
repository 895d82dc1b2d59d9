"""Energy of a kernel from its counters: KernelPro's proxy (Eq. 4) exactly, and a corrected form.

E = 20 pJ/B · B_DRAM + 100 pJ · S_ld · max(0, r/4 - 1) + 80 pJ · S_local + 3 pJ · I

with S_ld the global-load sectors, r the sectors of a load request, S_local the local sectors and
I the instructions of warps. The second term is for uncoalesced loads, but r is 4, 8 or 16 for
perfect loads of 4, 8 or 16 bytes a lane: it charges wide loads, which save energy. The corrected
form charges the sectors whose bytes nobody asked for:

E = 20 pJ/B · B_DRAM + 100 pJ · S_ld · (1 - b/32) + 80 pJ · S_local + 3 pJ · I

with b the bytes asked for in each sector. Neither sees TMA traffic or static power. The paper does
not say which instructions I counts: with those of warps the proxy tells its Swish pair apart by
2 %, with those of threads by 37 %; measured were 11.6 %. For ties only (profiling notes §E).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kopt.evidence import Energy, Evidence
from kopt.tools.counters import is_counted
from kopt.tools.global_access import bytes_per_sector, requests, sectors
from kopt.tools.registers import LOCAL_SECTORS
from kopt.tools.traffic import DRAM_READ, DRAM_WRITE

DRAM_PJ_PER_BYTE = 20.0
UNCOALESCED_PJ = 100.0
LOCAL_PJ = 80.0
INSTRUCTION_PJ = 3.0
SECTOR_BYTES = 32.0

Counted = Literal["warp", "thread"]
INSTRUCTIONS: dict[Counted, str] = {
    "warp": "smsp__inst_executed.sum",
    "thread": "smsp__thread_inst_executed.sum",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyTerms:
    """The terms of both forms, picojoules of one launch; None where a counter is unknown."""

    dram_pj: float | None
    """B1."""
    uncoalesced_pj: float | None
    """B2 as published: by sectors of a request."""
    unused_sectors_pj: float | None
    """B2 as corrected: by bytes that nobody asked for."""
    local_pj: float | None
    """B3."""
    instructions_pj: float | None
    """B4."""

    @property
    def paper_pj(self) -> float | None:
        """Eq. 4; None where one of its terms is unknown."""
        return _sum(self.dram_pj, self.uncoalesced_pj, self.local_pj, self.instructions_pj)

    @property
    def corrected_pj(self) -> float | None:
        """The corrected form; None where one of its terms is unknown."""
        return _sum(self.dram_pj, self.unused_sectors_pj, self.local_pj, self.instructions_pj)


def energy_terms(
    metrics: Mapping[str, float | None], *, instructions: Counted = "warp"
) -> EnergyTerms:
    """Return the terms of a kernel's energy from its counters of one launch.

    Args:
        metrics: ncu's counters in base units; a missing one is unknown, not 0.
        instructions: whether I counts instructions of warps or of threads.
    """
    moved = _sum(metrics.get(DRAM_READ), metrics.get(DRAM_WRITE))
    loaded, asked = metrics.get(sectors("ld")), metrics.get(requests("ld"))
    local = _sum(*(metrics.get(name) for name in LOCAL_SECTORS))
    executed = metrics.get(INSTRUCTIONS[instructions])
    return EnergyTerms(
        dram_pj=None if moved is None else DRAM_PJ_PER_BYTE * moved,
        uncoalesced_pj=_uncoalesced(loaded, asked),
        unused_sectors_pj=_unused_sectors(metrics),
        local_pj=None if local is None else LOCAL_PJ * local,
        instructions_pj=None if executed is None else INSTRUCTION_PJ * executed,
    )


def call_energy(evidence: Evidence, *, millijoules: float | None = None) -> Energy:
    """Return the energy of a call: both proxies over all launches, and what was measured.

    A proxy is None where a counter of one of the kernels is unknown: a part is no sum.

    Args:
        evidence: of the call, with counters.
        millijoules: measured, the idle draw subtracted; None: not measured.
    """
    terms = [(energy_terms(kernel.metrics), kernel.launches) for kernel in evidence.kernels]
    if not terms:
        return Energy(millijoules=millijoules)
    paper = [(each.paper_pj, launches) for each, launches in terms]
    corrected = [(each.corrected_pj, launches) for each, launches in terms]
    return Energy(
        proxy_pj=_weighted(paper), corrected_pj=_weighted(corrected), millijoules=millijoules
    )


def _uncoalesced(loaded: float | None, asked: float | None) -> float | None:
    if loaded is None or asked is None:
        return None
    if asked <= 0:
        return 0.0
    return UNCOALESCED_PJ * loaded * max(0.0, loaded / asked / 4.0 - 1.0)


def _unused_sectors(metrics: Mapping[str, float | None]) -> float | None:
    """The corrected B2: loads and asynchronous copies, each by the bytes that it asked for."""
    loaded, copied = metrics.get(sectors("ld")), metrics.get(sectors("ldgsts")) or 0.0
    if loaded is None:
        return None
    return _sum(
        _unused(max(0.0, loaded - copied), metrics.get(bytes_per_sector("ld"))),
        _unused(copied, metrics.get(bytes_per_sector("ldgsts"))),
    )


def _unused(touched: float, useful: float | None) -> float | None:
    if touched <= 0:
        return 0.0
    if useful is None or not is_counted(bytes_per_sector("ld"), useful):
        return None
    return UNCOALESCED_PJ * touched * max(0.0, 1.0 - useful / SECTOR_BYTES)


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _weighted(values: list[tuple[float | None, int]]) -> float | None:
    return _sum(*(None if value is None else value * launches for value, launches in values))
