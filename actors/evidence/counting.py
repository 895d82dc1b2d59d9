"""Counting candidates by ncu: which share a run, which of their kernels are counted, what it took.

A run of ncu takes seconds to start, and its filter of kernels is fixed then. One is therefore begun
before it is known what is to be counted, without a filter, and used where no filter is needed: all
kernels of the candidates matter. Otherwise it is let go, and one with a filter is started; none is
begun ahead then until candidates come that need none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from kopt.actors.evidence.ncu import Counted, NcuMeans, NcuRun
from kopt.actors.evidence.progress import Progress, that_matter
from kopt.actors.evidence.workbench import Workbench


class Counting:
    """Runs of ncu on one device."""

    def __init__(self, bench: Workbench, *, ahead: NcuRun | None = None) -> None:
        """Begin nothing yet.

        Args:
            bench: of the device.
            ahead: a run that was begun, without a filter, in a folder that others remove.
        """
        self._bench = bench
        self._ahead = ahead
        self._folders = ExitStack()
        """Those of the run that was begun ahead."""
        self._fits = True
        """Whether the last candidates needed no filter."""

    def begin(self, means: NcuMeans) -> None:
        """Begin a run whose candidates are not known yet, unless one is begun, or would not fit."""
        if self._ahead is None and self._fits:
            folder = self._folders.enter_context(self._bench.folder())
            self._ahead = NcuRun(means, folder=folder, arch=self._bench.arch)
            self._ahead.begin(self._bench.ncu_environment(folder))

    def count(self, under_way: Sequence[Progress], means: NcuMeans, *, with_rules: bool) -> None:
        """Count those that run: all in one run of ncu where it sees several processes.

        Args:
            under_way: candidates, with what their timelines showed.
            means: how ncu is run here.
            with_rules: NVIDIA's rules too, which needs a run for each.
        """
        able = [each for each in under_way if not each.failed]
        groups = [able] if means.forks and not with_rules else [[each] for each in able]
        for group in groups:
            if group:
                self._count(group, means, with_rules=with_rules)
        self.close()

    def close(self) -> None:
        """Let go of a run that was begun ahead."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None
        self._folders.close()

    def _count(self, group: Sequence[Progress], means: NcuMeans, *, with_rules: bool) -> None:
        began_s = time.monotonic()
        found = self._counted(group, means, with_rules=with_rules)
        each_s = (time.monotonic() - began_s) / len(group)
        for each, counted in zip(group, found, strict=True):
            each.counted = counted
            each.took_s["ncu"] = each_s
            each.took_s |= {f"ncu.{stage}": took for stage, took in counted.took_s.items()}
            if counted.failed:
                each.remarks.append(counted.failed)

    def _counted(
        self, group: Sequence[Progress], means: NcuMeans, *, with_rules: bool
    ) -> list[Counted]:
        bench = self._bench
        with bench.folder() as folder, self._run(group, means, with_rules=with_rules) as run:
            jobs = [
                bench.ncu_job(
                    bench.order(each.subject.problem, each.subject.candidate.source),
                    folder=folder,
                    build_dir=each.build_dir,
                    landlock=means.landlock,
                )
                for each in group
            ]
            return run.count(jobs)

    @contextmanager
    def _run(
        self, group: Sequence[Progress], means: NcuMeans, *, with_rules: bool
    ) -> Iterator[NcuRun]:
        """The run that was begun ahead, or another."""
        ahead = self._ahead
        self._fits = all(map(all_matter, group))
        if ahead is not None and not with_rules and self._fits:
            try:
                yield ahead
            finally:
                self.close()
            return
        self.close()
        kernels = [name for each in group for name in that_matter(each.trace)]
        with self._bench.folder() as folder:
            run = NcuRun(
                means,
                folder=folder,
                kernels=kernels,
                with_rules=with_rules,
                arch=self._bench.arch,
            )
            try:
                yield run
            finally:
                run.close()


def all_matter(each: Progress) -> bool:
    """Whether every kernel of a candidate is worth counting, as far as its timeline shows."""
    return len(that_matter(each.trace)) == len(each.kernels)
