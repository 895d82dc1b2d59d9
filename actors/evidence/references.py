"""Stage 1 for the problems of a device: the work of each reference, its roofs, its measured class.

Counted once for each problem and kept, in a child without a device: nothing is computed. A
reference that cannot be traced without content has no roofline; tools that need one stay silent.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any, cast

from kopt.actors.evidence.capabilities import Capabilities
from kopt.actors.evidence.kept_work import load_work, save_work, work_file
from kopt.actors.evidence.ncu import NcuMeans, count
from kopt.actors.evidence.order import Order
from kopt.actors.evidence.workbench import Workbench
from kopt.actors.supervisor.child import ChildFailed
from kopt.evidence import Roofline
from kopt.ports import Target
from kopt.problem import Problem
from kopt.tools.collect.ncu_raw import NcuReport
from kopt.tools.hardware import PRECISIONS, Gpu, Precision, find_gpu
from kopt.tools.roofline import Work, analyse_reference

WORK_S = 120.0
"""Beside what a reference may take to build an extension of its own."""
DURATION = "gpu__time_duration.sum"
THROUGHPUTS = (
    DURATION,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
)
"""Of the reference: few passes, since all of its kernels are counted."""


class References:
    """Rooflines of problems on one device."""

    def __init__(self, bench: Workbench, *, target: Target) -> None:
        """Know none yet."""
        self._bench = bench
        self._target = target
        self._works: dict[str, Work | str] = {}
        self._counting: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        """One problem is counted once, however many threads ask."""
        self._measured: dict[str, tuple[float, float] | str] = {}

    def roofline(
        self,
        problem: Problem,
        *,
        capabilities: Capabilities,
        means: NcuMeans | None,
        remarks: list[str],
    ) -> Roofline | None:
        """Return a problem's roofline; None where its work cannot be told.

        Args:
            problem: whose reference.
            capabilities: with the roof of a CPU.
            means: to measure the reference by ncu; None does not.
            remarks: gets a line where something cannot be had.
        """
        work = self._work(problem)
        if isinstance(work, str):
            remarks.append(f"roofline: {work}")
            return None
        is_host = self._target.device == "cpu"
        gpu = host_roofs(self._target, capabilities) if is_host else find_gpu(self._target.name)
        compute_pct = memory_pct = None
        if means is not None:
            measured = self._throughputs(problem, means)
            if isinstance(measured, str):
                remarks.append(f"reference: {measured}")
            else:
                compute_pct, memory_pct = measured
        return analyse_reference(work, gpu, compute_pct=compute_pct, memory_pct=memory_pct)

    def count(self, problem: Problem) -> None:
        """Count the work of a problem's reference, for `roofline`; may be called beside others."""
        self._work(problem)

    def _work(self, problem: Problem) -> Work | str:
        key = problem.problem_id
        with self._counting[key]:
            if key not in self._works:
                self._works[key] = self._kept_or_counted(problem)
        return self._works[key]

    def _kept_or_counted(self, problem: Problem) -> Work | str:
        order = self._bench.order(problem, None, look="work")
        device = self._target.device
        path = work_file(problem, order, device=device, cache_dir=self._bench.cache_dir)
        kept = load_work(path)
        try:
            if kept is not None:
                return work_from_json(kept, is_host=device == "cpu")
        except (TypeError, ValueError, KeyError):
            pass  # it is counted again, and kept anew
        try:
            report = self._counted(problem, order)
            work = work_from_json(report, is_host=device == "cpu")
        except ChildFailed as error:
            lines = error.log.strip().splitlines()
            return f"the reference cannot be counted ({(lines or [''])[-1][:200]})"
        except (TypeError, ValueError, KeyError) as error:
            return f"the report on the reference is no figures ({error})"
        save_work(path, report)
        return work

    def _counted(self, problem: Problem, order: Order) -> dict[str, Any]:
        """Count without a device; with one where the reference asks for it as it is loaded.

        Raises:
            ChildFailed: it cannot be counted.
        """
        try:
            return self._asked(problem, order, on_host=True)
        except ChildFailed:
            if self._target.device == "cpu":
                raise
            return self._asked(problem, order, on_host=False)

    def _asked(self, problem: Problem, order: Order, *, on_host: bool) -> dict[str, Any]:
        limit_s = WORK_S + self._bench.config.timeouts.build_s
        # A reference may build an extension as it is imported, like a candidate.
        with self._bench.folder() as folder:
            child = self._bench.child(problem, build_dir=folder, keeps_builds=True, on_host=on_host)
            try:
                return self._bench.ask(child, order, timeout_s=limit_s)
            finally:
                child.end()

    def _throughputs(self, problem: Problem, means: NcuMeans) -> tuple[float, float] | str:
        key = problem.problem_id
        if key not in self._measured:
            few = NcuMeans(
                path=means.path, counters=THROUGHPUTS, forks=means.forks, landlock=means.landlock
            )
            with self._bench.folder() as folder:
                job = self._bench.ncu_job(
                    self._bench.order(problem, None),
                    folder=folder,
                    build_dir=folder,
                    landlock=means.landlock,
                )
                counted = count([job], means=few, kernels=(), folder=folder, arch=self._bench.arch)[
                    0
                ]
            self._measured[key] = (
                counted.failed
                if counted.report is None
                else mean_throughputs(counted.report) or "its throughputs are unknown"
            )
        return self._measured[key]


def mean_throughputs(report: NcuReport) -> tuple[float, float] | None:
    """Return compute and memory throughput over all launches, per cent, weighted by their time."""
    rows = [tuple(launch.metrics.get(name) for name in THROUGHPUTS) for launch in report.launches]
    known = [cast("tuple[float, float, float]", row) for row in rows if None not in row]
    total_ns = sum(row[0] for row in known)
    if not known or total_ns <= 0:
        return None
    compute = sum(row[0] * row[1] for row in known) / total_ns
    return compute, sum(row[0] * row[2] for row in known) / total_ns


def work_from_json(record: dict[str, Any], *, is_host: bool) -> Work:
    """Return the work of a child's report.

    Args:
        record: as `reference_work` gives it.
        is_host: a CPU has no pipes for TF32: those products are fp32.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    matrix: dict[Precision, float] = {}
    for name, flops in dict(record["matrix_flops"]).items():
        if name not in PRECISIONS:
            raise ValueError(f"precision {name!r}")
        precision: Precision = "fp32" if is_host and name != "fp64" else name
        matrix[precision] = matrix.get(precision, 0.0) + float(flops)
    return Work(
        matrix_flops=tuple(sorted(matrix.items())),
        vector_flops=float(record["vector_flops"]),
        bytes=float(record["bytes"]),
        unfused_bytes=float(record["unfused_bytes"]),
    )


def host_roofs(target: Target, capabilities: Capabilities) -> Gpu | None:
    """Return a CPU's roofs, as measured, in the form of the table of GPUs."""
    roof = capabilities.roof
    if not roof.get("tb_per_s") or not roof.get("fp32_tflops"):
        return None
    peaks: dict[Precision, float] = {"fp32": roof["fp32_tflops"]}
    if roof.get("fp64_tflops"):
        peaks["fp64"] = roof["fp64_tflops"]
    return Gpu(
        name=target.name,
        arch=target.arch,
        tflops=peaks,
        tb_per_s=roof["tb_per_s"],
        num_sms=int(roof.get("num_threads", 1)),
        l2_mib=0,
    )
