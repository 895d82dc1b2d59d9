"""How much of a call a finding is about, and what that can be worth.

By Amdahl, a change within a share s of the call's time gains at most 1 / (1 - s): a kernel that
works in 7 % of a call is not its bottleneck, whatever stalls its warps. The share is of the time
from the first launch to the end of the last device work, as the timeline has it; where there is but
one launch it is of the device's busy time, since one launch has to be paid for.
"""

from __future__ import annotations

from kopt.evidence import Evidence, KernelEvidence, Timeline
from kopt.finding import SEVERITIES, Severity

BOUNDS: tuple[tuple[float, Severity], ...] = ((0.5, "critical"), (0.25, "high"), (0.1, "medium"))
"""Least share of the call, and the worst that something within it can be: twice the speed, a third
more, a tenth more. Below: low."""
MOST = BOUNDS[0][0]
"""From this share on something holds most of the call."""


def device_share(evidence: Evidence) -> float:
    """Return the share of the call in which the device works; 1 where that is unknown."""
    timeline = evidence.timeline
    if timeline is None or timeline.busy_us is None or _call_us(timeline) <= 0:
        return 1.0
    return min(1.0, timeline.busy_us / _call_us(timeline))


def kernel_share(evidence: Evidence, kernel: KernelEvidence) -> float:
    """Return the share of the call that a kernel takes; 1 where nothing tells."""
    timeline = evidence.timeline
    if timeline is not None and kernel.time_us is not None and _call_us(timeline) > 0:
        return min(1.0, kernel.time_us / _call_us(timeline))
    return (1.0 if kernel.share is None else kernel.share) * device_share(evidence)


def bounded(severity: Severity, *, share: float) -> Severity:
    """Return a severity, no worse than what a share of the call can be worth."""
    bound = next((worst for least, worst in BOUNDS if share >= least), SEVERITIES[-1])
    return max(severity, bound, key=SEVERITIES.index)


def _call_us(timeline: Timeline) -> float:
    single = timeline.launches is not None and timeline.launches <= 1
    return timeline.busy_us if single and timeline.busy_us else timeline.e2e_us
