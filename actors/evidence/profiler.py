"""Profiling on one device: from a problem and its candidates to their evidence.

A timeline first, by torch's profiler in a child, which takes a second; it names the kernels that
matter, and ncu counts those. What needs no device is done beside: ncu and its program start while
timelines are recorded, binaries are read and references counted while ncu runs. Nothing else uses
the device while something is recorded or counted on it. What fails is left out and said; only where
nothing at all could be had is there no evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from kopt.actors.config import EvaluateConfig
from kopt.actors.devices.base import DeviceName, describe
from kopt.actors.evidence.binaries import Binaries, read_binaries
from kopt.actors.evidence.capabilities import Capabilities, load_capabilities
from kopt.actors.evidence.counting import Counting
from kopt.actors.evidence.early import Early
from kopt.actors.evidence.energy import MEASURE_S
from kopt.actors.evidence.found_builds import FoundBuilds
from kopt.actors.evidence.ncu import NcuMeans, means_of
from kopt.actors.evidence.probe import probe
from kopt.actors.evidence.progress import Progress, last_line, that_matter
from kopt.actors.evidence.references import References
from kopt.actors.evidence.subjects import Profile, Subject, evidence_of
from kopt.actors.evidence.timelines import TRACE_S, take_timelines
from kopt.actors.evidence.workbench import Workbench
from kopt.actors.supervisor.child import ChildFailed
from kopt.energy_protocol import figures_from_report
from kopt.errors import ConfigError, ProfileFailed
from kopt.evidence import EvidenceLevel
from kopt.ports import Target
from kopt.tools.collect.assemble import Collected, assemble
from kopt.tools.collect.kineto import TraceReport
from kopt.tools.collect.owners import owner
from kopt.verdict import Correct

__all__ = ["DeviceProfiler", "Profile", "Subject", "evidence_of", "that_matter"]

LEVELS: tuple[EvidenceLevel, ...] = ("ncu", "timeline", "static")
"""The deepest first."""
ASIDE = 3
"""Threads for what needs no device."""


class DeviceProfiler:
    """Profiles on one device, in the calling process and its children."""

    def __init__(
        self,
        config: EvaluateConfig,
        device: DeviceName,
        cache_dir: str,
        *,
        is_lasting: bool = True,
        ready_for: EvidenceLevel | None = None,
        early: Early | None = None,
    ) -> None:
        """Start; what the machine has is probed with the first candidate.

        Args:
            config: how candidates are judged.
            device: kind of device.
            cache_dir: kopt's cache on this node.
            is_lasting: many candidates will be asked about: what the next ones need is begun when
                the last are done (see also `Workbench`).
            ready_for: a level that will be asked for at once: what takes long and needs no
                candidate begins now, where this machine was looked at before.
            early: what was started for this device already; None starts it.

        Raises:
            ConfigError: the device is not here.
        """
        self._cache_dir = Path(cache_dir)
        self._bench = Workbench(
            config,
            device=device,
            cache_dir=self._cache_dir,
            is_lasting=is_lasting,
            zygote=None if early is None else early.zygote,
        )
        self._is_lasting = is_lasting
        self._counting = Counting(self._bench, ahead=None if early is None else early.ncu)
        self._has = load_capabilities(self._cache_dir, device=device)
        if self._has is not None and ready_for is not None:
            self._begin(means_of(self._has, level=ready_for), with_rules=False)
        try:  # while the zygote loads
            self._target = describe(device)
        except ConfigError:
            self.close()
            raise
        self._builds = FoundBuilds(self._bench, cache_dir=self._cache_dir)
        self._references = References(self._bench, target=self._target)

    @property
    def target(self) -> Target:
        """What is profiled on."""
        return self._target

    def capabilities(self) -> Capabilities:
        """Return what this machine has; looked for once."""
        if self._has is None:
            self._has = probe(self._bench.device, cache_dir=self._cache_dir, workbench=self._bench)
        return self._has

    def profile(
        self,
        subjects: Sequence[Subject],
        *,
        level: EvidenceLevel = "ncu",
        with_rules: bool = False,
        with_reference: bool = False,
        with_energy: bool = False,
    ) -> list[Profile]:
        """Profile candidates, those of one problem best together: they share a run of ncu.

        Args:
            subjects: the candidates.
            level: no deeper than this.
            with_rules: NVIDIA's rules too.
            with_reference: measure the problem's reference too, once: its measured class.
            with_energy: measure the energy of a call too, half a minute of a GPU each.

        Raises:
            WorkerLost: the zygote is gone.
        """
        has = self.capabilities()
        means = means_of(has, level=level)
        with ExitStack() as stack:
            under_way = []
            for subject in subjects:
                built = self._builds.of(subject, stack)
                under_way.append(
                    Progress(
                        subject=subject,
                        build_dir=built.folder,
                        is_cached=built.is_whole,
                        builds=built.builds,
                    )
                )
            self._begin(means, with_rules=with_rules)
            aside = stack.enter_context(ThreadPoolExecutor(max_workers=ASIDE))
            done = self._take_timelines(
                under_way, aside, wanted=has.timeline.ok and level != "static"
            )
            done += self._count_references(under_way, aside)
            if means is not None:
                self._counting.count(under_way, means, with_rules=with_rules)
            for work in done:
                work.result()
            for each in under_way:
                if with_energy and not each.failed:
                    with each.stage("energy"):
                        self._measure_energy(each, has)
                each.roofline = self._references.roofline(
                    each.subject.problem,
                    capabilities=has,
                    means=means if with_reference else None,
                    remarks=each.remarks,
                )
            if self._is_lasting:
                self._begin(means, with_rules=with_rules)
            return [self._finished(each) for each in under_way]

    def close(self) -> None:
        """End the processes."""
        self._counting.close()
        self._bench.close()

    def _begin(self, means: NcuMeans | None, *, with_rules: bool) -> None:
        if means is not None and not with_rules:
            self._counting.begin(means)

    def _take_timelines(
        self, under_way: Sequence[Progress], aside: ThreadPoolExecutor, *, wanted: bool
    ) -> list[Future[None]]:
        """Record timelines, and have binaries read beside; return what is still being read.

        Where no timeline is wanted, what is not built yet still runs, and leaves what can be read.
        """
        reading: dict[int, Future[None]] = {}
        is_host = self._bench.device == "cpu"

        def read(each: Progress) -> None:
            reading[id(each)] = aside.submit(self._read_binaries, each)

        def taken(each: Progress) -> None:
            if not wanted:
                each.trace = None
            if not is_host:  # on a CPU, what is done beside takes from what is recorded
                read(each)

        run = [each for each in under_way if wanted or not each.is_cached]
        take_timelines(run, bench=self._bench, taken=taken)
        for each in under_way:
            if id(each) not in reading:
                read(each)
        return list(reading.values())

    def _count_references(
        self, under_way: Sequence[Progress], aside: ThreadPoolExecutor
    ) -> list[Future[None]]:
        """Have the references counted, each once; the time is told with its first candidate."""
        first = {each.subject.problem.problem_id: each for each in reversed(under_way)}

        def count(each: Progress) -> None:
            with each.stage("roofline"):
                self._references.count(each.subject.problem)

        return [aside.submit(count, each) for each in first.values()]

    def _read_binaries(self, each: Progress) -> None:
        launched = {kernel.name: kernel.registers for kernel in each.kernels}
        try:
            with each.stage("code"):
                each.binaries = read_binaries(
                    each.build_dir, device=self._bench.device, launched=launched
                )
        except OSError as error:  # the candidate runs meanwhile, and may take files away
            each.binaries = Binaries(remarks=(f"code: {error.strerror}",))

    def _measure_energy(self, each: Progress, has: Capabilities) -> None:
        if not has.energy.ok:
            each.remarks.append(f"energy: {has.energy.found}; {has.energy.fix}")
            return
        problem = each.subject.problem
        order = self._bench.order(problem, each.subject.candidate.source, look="energy")
        try:
            report = self._bench.observe(
                problem, order, timeout_s=TRACE_S + MEASURE_S, build_dir=each.build_dir
            )
            each.energy = figures_from_report(report)
        except ChildFailed as error:
            each.remarks.append(f"energy: {last_line(error.log)}")
        except ProfileFailed as error:
            each.remarks.append(str(error))

    def _finished(self, each: Progress) -> Profile:
        found = each.counted.report is not None or each.trace is not None
        has_code = each.binaries.sass is not None or each.binaries.host_code is not None
        if not found and not has_code:
            why = each.failed or "; ".join(each.remarks) or "nothing could be collected"
            remarks, took_s = tuple(each.remarks), _rounded(each.took_s)
            return Profile(evidence=None, failed=why, remarks=remarks, took_s=took_s)
        evaluation = each.subject.evaluation
        verdict = None if evaluation is None else evaluation.verdict
        assembled = assemble(
            Collected(
                device=self._target.name,
                arch=self._target.arch,
                ncu=each.counted.report,
                rules=each.counted.rules,
                trace=_owned(each.trace, each.binaries.own),
                sass=each.binaries.sass,
                usage=each.binaries.usage,
                host_code=each.binaries.host_code,
                roofline=each.roofline,
                time_us=verdict.timing.time_us if isinstance(verdict, Correct) else None,
                millijoules=None if each.energy is None else each.energy.candidate_mj,
                own=each.binaries.own,
            )
        )
        said = (*each.remarks, *each.binaries.remarks, *assembled.remarks)
        failed = (each.failed,) if each.failed else ()
        return Profile(
            evidence=assembled.evidence,
            remarks=tuple(dict.fromkeys((*failed, *said))),
            disagreement=each.disagreement,
            energy=each.energy,
            took_s=_rounded(each.took_s),
        )


def _owned(trace: TraceReport | None, own: tuple[str, ...]) -> TraceReport | None:
    """The timeline with the candidate's own kernels told by the entry points of what it built."""
    if trace is None or not own:
        return trace
    kernels = (replace(each, owner=owner(each.name, own=own)) for each in trace.kernels)
    return replace(trace, kernels=tuple(kernels))


def _rounded(took_s: Mapping[str, float]) -> dict[str, float]:
    return {stage: round(seconds, 2) for stage, seconds in took_s.items()}
