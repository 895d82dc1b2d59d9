"""Profiling on one device: from a problem and its candidates to their evidence.

A timeline first, by torch.profiler in a child, which takes a second; it names the kernels that
matter, and ncu counts those. Binaries are read meanwhile from what the candidate built. What fails
is left out and said; only where nothing at all could be had is there no evidence.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kopt.actors.config import EvaluateConfig
from kopt.actors.devices.base import DeviceName, describe
from kopt.actors.evidence.binaries import Binaries, read_binaries
from kopt.actors.evidence.capabilities import Capabilities
from kopt.actors.evidence.energy import MEASURE_S
from kopt.actors.evidence.found_builds import FoundBuilds
from kopt.actors.evidence.ncu import Counted, NcuMeans, count
from kopt.actors.evidence.probe import probe
from kopt.actors.evidence.references import References
from kopt.actors.evidence.subjects import Profile, Subject, evidence_of
from kopt.actors.evidence.workbench import Workbench
from kopt.actors.supervisor.child import ChildFailed
from kopt.energy_protocol import EnergyFigures, figures_from_report
from kopt.errors import ProfileFailed
from kopt.evidence import EvidenceLevel, Roofline
from kopt.ports import Target
from kopt.tools.collect.assemble import Collected, assemble
from kopt.tools.collect.host_trace import parse_host_trace
from kopt.tools.collect.kineto import TracedKernel, TraceReport, parse_trace
from kopt.tools.collect.owners import owner
from kopt.tools.collect.unreadable import UnreadableProfile
from kopt.verdict import Correct

__all__ = ["DeviceProfiler", "Profile", "Subject", "evidence_of", "that_matter"]

_LOG = logging.getLogger(__name__)
TRACE_S = 120.0
"""Loading, compiling, warm-up and the traced calls of one candidate, beside what it may take to
build extensions where it or the reference does so."""
MAX_COUNTED = 8
"""Kernels of a candidate that are counted, by share of the timeline."""
COUNTED_SHARE = 0.01
"""Below this share of the device's time a kernel is not counted, unless it is the first."""
LEVELS: tuple[EvidenceLevel, ...] = ("ncu", "timeline", "static")
"""The deepest first."""


@dataclass(slots=True)
class _Progress:
    """A subject on its way."""

    subject: Subject
    build_dir: Path
    is_cached: bool
    builds: bool = False
    """Whether a run of it may build extensions."""
    trace: TraceReport | None = None
    binaries: Binaries = field(default_factory=Binaries)
    counted: Counted = field(default_factory=Counted)
    roofline: Roofline | None = None
    energy: EnergyFigures | None = None
    remarks: list[str] = field(default_factory=list)
    disagreement: str = ""
    failed: str = ""
    took_s: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Note how long a stage takes."""
        began_s = time.monotonic()
        try:
            yield
        finally:
            self.took_s[name] = self.took_s.get(name, 0.0) + time.monotonic() - began_s


class DeviceProfiler:
    """Profiles on one device, in the calling process and its children."""

    def __init__(self, config: EvaluateConfig, device: DeviceName, cache_dir: str) -> None:
        """Start; what the machine has is probed with the first candidate.

        Raises:
            ConfigError: the device is not here.
        """
        self._target = describe(device)
        self._cache_dir = Path(cache_dir)
        self._bench = Workbench(config, device=device, cache_dir=self._cache_dir)
        self._builds = FoundBuilds(self._bench, cache_dir=self._cache_dir)
        self._references = References(self._bench, target=self._target)

    @property
    def target(self) -> Target:
        """What is profiled on."""
        return self._target

    def capabilities(self) -> Capabilities:
        """Return what this machine has; looked for once."""
        return probe(self._bench.device, cache_dir=self._cache_dir, workbench=self._bench)

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
        allowed = LEVELS[LEVELS.index(level) :]
        with ExitStack() as folders:
            under_way = []
            for subject in subjects:
                built = self._builds.of(subject, folders)
                under_way.append(
                    _Progress(subject, built.folder, is_cached=built.is_whole, builds=built.builds)
                )
            for each in under_way:
                with each.stage("timeline"):
                    if "timeline" in allowed and has.timeline.ok:
                        self._trace(each)
                    elif not each.is_cached:
                        self._trace(each)  # nothing is built yet: a run leaves what can be read
                        each.trace = None
            means = _means(has) if "ncu" in allowed else None
            # Disassembling needs no device: it is done while ncu runs.
            with ThreadPoolExecutor(max_workers=1) as aside:
                done = aside.submit(self._read_binaries, under_way)
                if means is not None:
                    self._count(under_way, means, with_rules=with_rules)
                done.result()
            for each in under_way:
                if with_energy and not each.failed:
                    with each.stage("energy"):
                        self._measure_energy(each, has)
                with each.stage("roofline"):
                    each.roofline = self._references.roofline(
                        each.subject.problem,
                        capabilities=has,
                        means=means if with_reference else None,
                        remarks=each.remarks,
                    )
            return [self._finished(each) for each in under_way]

    def close(self) -> None:
        """End the processes."""
        self._bench.close()

    def _read_binaries(self, under_way: Sequence[_Progress]) -> None:
        for each in under_way:
            launched = {kernel.name: kernel.registers for kernel in _kernels(each.trace)}
            try:
                with each.stage("code"):
                    each.binaries = read_binaries(
                        each.build_dir, device=self._bench.device, launched=launched
                    )
            except OSError as error:  # the candidate runs meanwhile, and may take files away
                each.binaries = Binaries(remarks=(f"code: {error.strerror}",))

    def _trace(self, each: _Progress) -> None:
        problem, candidate = each.subject.problem, each.subject.candidate
        order = self._bench.order(problem, candidate.source)
        build_s = self._bench.config.timeouts.build_s if each.builds else 0.0
        try:
            report = self._bench.observe(
                problem,
                order,
                timeout_s=TRACE_S + build_s,
                build_dir=each.build_dir,
                keeps_builds=not each.is_cached,
            )
        except ChildFailed as error:
            how = f"no answer within {error.limit_s:g} s" if error.how == "timed_out" else error.log
            each.failed = f"{error.stage}: {_last_line(how)}"
            _LOG.info("%s: %s", problem.name, error.log)
            return
        each.disagreement = str(report.get("disagreement", ""))[:300]
        text = str(report.get("trace", ""))
        try:
            is_host = self._bench.device == "cpu"
            each.trace = parse_host_trace(text) if is_host else parse_trace(text)
        except UnreadableProfile as error:
            each.remarks.append(f"timeline: {error}")

    def _count(self, under_way: Sequence[_Progress], means: NcuMeans, *, with_rules: bool) -> None:
        """Count those that run: all in one run of ncu where it sees several processes."""
        able = [each for each in under_way if not each.failed]
        groups = [able] if means.forks and not with_rules else [[each] for each in able]
        for group in groups:
            if not group:
                continue
            with self._bench.folder() as folder:
                jobs = [
                    self._bench.ncu_job(
                        self._bench.order(each.subject.problem, each.subject.candidate.source),
                        folder=folder,
                        build_dir=each.build_dir,
                        landlock=means.landlock,
                    )
                    for each in group
                ]
                kernels = [name for each in group for name in that_matter(each.trace)]
                began_s = time.monotonic()
                found = count(
                    jobs, means=means, kernels=kernels, folder=folder, with_rules=with_rules
                )
                each_s = (time.monotonic() - began_s) / len(group)
            for each, counted in zip(group, found, strict=True):
                each.counted = counted
                each.took_s["ncu"] = each_s
                each.took_s |= {f"ncu.{stage}": took for stage, took in counted.took_s.items()}
                if counted.failed:
                    each.remarks.append(counted.failed)

    def _measure_energy(self, each: _Progress, has: Capabilities) -> None:
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
            each.remarks.append(f"energy: {_last_line(error.log)}")
        except ProfileFailed as error:
            each.remarks.append(str(error))

    def _finished(self, each: _Progress) -> Profile:
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


def that_matter(trace: TraceReport | None) -> list[str]:
    """Return the names of the kernels that are worth counting, the longest first."""
    kernels = _kernels(trace)[:MAX_COUNTED]
    return [k.name for at, k in enumerate(kernels) if at == 0 or k.share >= COUNTED_SHARE]


def _kernels(trace: TraceReport | None) -> tuple[TracedKernel, ...]:
    return () if trace is None else trace.kernels


def _owned(trace: TraceReport | None, own: tuple[str, ...]) -> TraceReport | None:
    """The timeline with the candidate's own kernels told by the entry points of what it built."""
    if trace is None or not own:
        return trace
    kernels = (replace(each, owner=owner(each.name, own=own)) for each in trace.kernels)
    return replace(trace, kernels=tuple(kernels))


def _means(has: Capabilities) -> NcuMeans | None:
    if not has.counters.ok or has.ncu_path is None:
        return None
    return NcuMeans(
        path=has.ncu_path,
        counters=has.counter_names,
        forks=has.ncu_forks,
        landlock=has.ncu_landlock,
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no reason given"


def _rounded(took_s: Mapping[str, float]) -> dict[str, float]:
    return {stage: round(seconds, 2) for stage, seconds in took_s.items()}
