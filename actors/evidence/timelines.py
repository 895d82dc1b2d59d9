"""The timelines of candidates: each by torch's profiler in a child of its own, one after the other.

Children are forked and their devices opened together, before anything is recorded: a context takes
longer than a record. From then on one candidate at a time is loaded, runs, and is gone, its memory
with it, before the next.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from kopt.actors.evidence.laps import stage_seconds
from kopt.actors.evidence.progress import Progress, last_line
from kopt.actors.evidence.workbench import Workbench
from kopt.actors.supervisor.child import Child, ChildFailed
from kopt.tools.collect.host_trace import parse_host_trace
from kopt.tools.collect.kineto import parse_trace
from kopt.tools.collect.unreadable import UnreadableProfile

_LOG = logging.getLogger(__name__)
TRACE_S = 120.0
"""Loading, compiling, warm-up and the traced calls of one candidate, beside what it may take to
build extensions where it or the reference does so."""
OPEN_TOGETHER = 5
"""Devices opened at a time; a context of a GPU takes half a gigabyte of it."""


def take_timelines(
    under_way: Sequence[Progress], *, bench: Workbench, taken: Callable[[Progress], None]
) -> None:
    """Record the timeline of each; one that fails says why in its `failed` or its remarks.

    Args:
        under_way: the candidates.
        bench: where children are made.
        taken: called with each when its record is there, its child perhaps not gone yet.

    Raises:
        WorkerLost: the zygote is gone.
    """
    for begin in range(0, len(under_way), OPEN_TOGETHER):
        together = under_way[begin : begin + OPEN_TOGETHER]
        with _opened(together, bench=bench) as children:
            for each, child in zip(together, children, strict=True):
                with each.stage("timeline"):
                    if isinstance(child, ChildFailed):
                        _note_failure(each, child)
                        continue
                    _take(each, child, bench=bench)
                    taken(each)
                    with each.stage("timeline.close"):
                        child.end()


@contextmanager
def _opened(
    together: Sequence[Progress], *, bench: Workbench
) -> Iterator[list[Child | ChildFailed]]:
    """A child for each, its device open, or why there is none."""

    def opened(each: Progress) -> Child | ChildFailed:
        try:
            return bench.child(
                each.subject.problem, build_dir=each.build_dir, keeps_builds=not each.is_cached
            )
        except ChildFailed as failure:
            return failure

    began_s = time.monotonic()
    with ThreadPoolExecutor(max_workers=OPEN_TOGETHER) as threads:
        asked = [threads.submit(opened, each) for each in together]
    try:
        each_s = (time.monotonic() - began_s) / len(together)
        for each in together:
            each.took_s |= {"timeline": each_s, "timeline.open": each_s}
        yield [answer.result() for answer in asked]
    finally:
        for answer in asked:
            made = None if answer.exception() is not None else answer.result()
            if isinstance(made, Child):
                made.end()


def _take(each: Progress, child: Child, *, bench: Workbench) -> None:
    order = bench.order(each.subject.problem, each.subject.candidate.source)
    build_s = bench.config.timeouts.build_s if each.builds else 0.0
    try:
        report = bench.ask(child, order, timeout_s=TRACE_S + build_s)
    except ChildFailed as failure:
        _note_failure(each, failure)
        return
    stages = stage_seconds(report.get("took_s"))
    each.took_s |= {f"timeline.{stage}": seconds for stage, seconds in stages.items()}
    each.disagreement = str(report.get("disagreement", ""))[:300]
    text = str(report.get("trace", ""))
    try:
        each.trace = parse_host_trace(text) if bench.device == "cpu" else parse_trace(text)
    except UnreadableProfile as error:
        each.remarks.append(f"timeline: {error}")


def _note_failure(each: Progress, failure: ChildFailed) -> None:
    late = failure.how == "timed_out"
    how = f"no answer within {failure.limit_s:g} s" if late else failure.log
    each.failed = f"{failure.stage}: {last_line(how)}"
    _LOG.info("%s: %s", each.subject.problem.name, failure.log)
