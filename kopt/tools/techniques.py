"""Techniques that apply to a class of bottleneck, on a kind of device: what an expert would try.

KernelOPT's planner reads a list chosen by the kernel's bottleneck, its kind of work and the
architecture ("applicable optimization techniques", App. A.1); the texts are ours. The list goes
beside findings: these say what is wrong with this kernel, the list what such a kernel may gain by.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from kopt.evidence import BottleneckClass, Evidence, Tier

MAX_TECHNIQUES = 5
"""Told at once: a long list is a manual, not advice."""
_SM = re.compile(r"sm_?(\d+)")

_CLASS_OF_TIER: dict[Tier, BottleneckClass] = {
    "memory-bound": "memory",
    "compute-bound": "compute",
    "underutilized": "latency",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Technique:
    """One technique, and where it applies."""

    text: str
    """What to do, in a sentence."""
    classes: tuple[BottleneckClass, ...]
    device: Literal["cuda", "cpu", "any"] = "any"
    least_sm: int = 0
    """Compute capability from which it exists, such as 80; only for `cuda`."""
    matrix: bool | None = None
    """True: only where there is matrix work; False: only where there is none; None: either."""


TECHNIQUES: tuple[Technique, ...] = (
    Technique(
        text="Fuse what follows and what comes before into the kernel that holds the values, so "
        "that no intermediate goes to memory and comes back.",
        classes=("memory", "latency", "mixed"),
    ),
    Technique(
        text="Stage tiles of both operands through shared memory by asynchronous copies (cp.async; "
        "TMA from sm_90 on), two or more ahead of the products.",
        classes=("compute", "mixed"),
        device="cuda",
        least_sm=80,
        matrix=True,
    ),
    Technique(
        text="Give the products to the tensor cores: tiles of 64 to 256 a side, and the highest "
        "precision of theirs that the numeric policy lets pass.",
        classes=("compute", "mixed"),
        device="cuda",
        least_sm=70,
        matrix=True,
    ),
    Technique(
        text="Let the vendor's library do the large product, and put only what surrounds it into "
        "kernels of your own, or change the algebra so that the product gets smaller.",
        classes=("compute", "mixed"),
        matrix=True,
    ),
    Technique(
        text="Move 16 bytes a thread with each access, neighbouring threads on neighbouring "
        "addresses, and several independent loads in flight before the first is used.",
        classes=("memory", "mixed"),
        device="cuda",
    ),
    Technique(
        text="Read each input once: keep a row in registers or shared memory between the passes "
        "over it, or use a form that needs one pass (online softmax, Welford).",
        classes=("memory", "mixed"),
        matrix=False,
    ),
    Technique(
        text="Order blocks so that those that run together share operands in L2 (grouped tiles).",
        classes=("memory", "mixed"),
        device="cuda",
        matrix=True,
    ),
    Technique(
        text="Make fewer launches: one kernel for the whole chain, or a CUDA graph where shapes "
        "do not change.",
        classes=("latency",),
        device="cuda",
    ),
    Technique(
        text="Fill the device: split long reductions over several blocks and combine them, or make "
        "tiles smaller, until there are several blocks for each multiprocessor.",
        classes=("latency", "mixed"),
        device="cuda",
    ),
    Technique(
        text="Take what blocks the host out of forward: `.item()`, copies to the host, "
        "allocations, weights that could be prepared once.",
        classes=("latency",),
    ),
    Technique(
        text="Shorten the chain of dependent steps: several independent accumulators, shuffles "
        "within a warp in place of barriers.",
        classes=("latency", "compute"),
        device="cuda",
        matrix=False,
    ),
    Technique(
        text="Do less arithmetic for a value: common terms once, reciprocals in place of "
        "divisions, the device's own exp and rsqrt where the policy lets their error pass.",
        classes=("compute",),
        matrix=False,
    ),
    Technique(
        text="Cut the work into pieces that fit a core's L2, and do all steps on one piece before "
        "the next is touched.",
        classes=("memory", "mixed"),
        device="cpu",
    ),
    Technique(
        text="Let inner loops run over contiguous values without branches or calls, so that the "
        "compiler makes full-width vectors and fused multiply-adds of them (`#pragma omp simd`).",
        classes=("compute", "memory", "mixed"),
        device="cpu",
    ),
    Technique(
        text="Use one parallel region for the whole chain, with chunks large enough to pay for the "
        "threads; very small work is quicker on one thread.",
        classes=("latency", "memory", "mixed"),
        device="cpu",
    ),
    Technique(
        text="Break a reduction into several accumulators, so that additions do not wait for each "
        "other.",
        classes=("compute", "latency"),
        device="cpu",
        matrix=False,
    ),
)


def techniques_for(
    bottleneck: BottleneckClass, *, arch: str, has_matrix_work: bool, most: int = MAX_TECHNIQUES
) -> tuple[str, ...]:
    """Return what applies to a class of bottleneck, in the order of the table.

    Args:
        bottleneck: class of the problem, or of the kernel.
        arch: `sm_90`, or the CPU's machine name.
        has_matrix_work: whether a part of the work is matrix products, convolutions or attention.
        most: how many at most.
    """
    match = _SM.match(arch)
    sm = int(match[1]) if match else None
    device = "cpu" if sm is None else "cuda"
    return tuple(
        each.text
        for each in TECHNIQUES
        if bottleneck in each.classes
        and each.device in (device, "any")
        and (sm is None or sm >= each.least_sm)
        and each.matrix in (None, has_matrix_work)
    )[:most]


def techniques_of(evidence: Evidence, *, tier: Tier | None = None) -> tuple[str, ...]:
    """Return what applies to what was profiled; empty where no class is known, or nothing is left.

    Args:
        evidence: for the class of the problem, its work, and the device.
        tier: KernelOPT's, which stands above the problem's class; None: there is none.
    """
    if tier == "near-optimal":
        return ()
    roofline = evidence.roofline
    bottleneck = None if roofline is None else roofline.bottleneck
    if tier is not None:
        bottleneck = _CLASS_OF_TIER[tier]
    if bottleneck is None:
        return ()
    has_matrix_work = roofline is not None and bool(roofline.matrix_flops)
    return techniques_for(bottleneck, arch=evidence.arch, has_matrix_work=has_matrix_work)
