"""One test for each entry of the tables, the evaluator that judges it, both rates at the end."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import groupby
from pathlib import Path

import pytest

from kopt.actors.builder import BUILT_AHEAD, Builder, BuildResult, nothing_to_build, unbuilt
from kopt.actors.config import EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.supply import Supply
from kopt.candidate import Candidate
from kopt.environment import CACHE_VARIABLE
from kopt.evaluation import Evaluation, Track
from kopt.ladder import LadderName
from kopt.problem import Problem

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from redteam_cases import Case, read_cases  # noqa: E402 - the line before leads there

GPU_SUPPLY = Supply(in_flight=3, warm_children=4)
"""As a device lane of a search has it."""
SECONDS = pytest.StashKey[list[tuple[Case, Mapping[str, float]]]]()
"""Of each candidate that was judged, in each stage."""
NUM_LONGEST = 5
"""Candidates that are named for what they took."""
OUTCOME = "redteam-outcome"
"""Name of the property by which a test says what became of its candidate."""

TIMEOUTS: dict[DeviceName, TimeoutConfig] = {
    "cpu": TimeoutConfig(
        build_s=120.0, load_s=30.0, correctness_s=3.0, timing_s=10.0, reference_s=60.0
    ),
    "cuda": TimeoutConfig(
        build_s=300.0, load_s=120.0, correctness_s=30.0, timing_s=30.0, reference_s=120.0
    ),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each entry of the table that a test asks for by name.

    `timed_attack` and `untimed_attack` share out the attacks.
    """
    for argument, folder, timed in (
        ("timed_attack", "adversarial", (True,)),
        ("untimed_attack", "adversarial", (False,)),
        ("kernel", "honest", (True, False)),
    ):
        if argument not in metafunc.fixturenames:
            continue
        parameters = []
        for case in read_cases(folder):
            if case.is_timed not in timed:
                continue
            marks = [pytest.mark.gpu] if case.where == "gpu" else []
            marks += [pytest.mark.slow] if case.slow or case.where == "gpu" else []
            if case.needs and shutil.which(case.needs) is None:
                marks.append(pytest.mark.skip(reason=f"{case.needs} is not installed"))
            if case.known_open:
                marks.append(pytest.mark.xfail(reason=case.known_open, strict=True))
            parameters.append(pytest.param(case, id=f"{case.number} {case.name}", marks=marks))
        metafunc.parametrize(argument, parameters)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Cases of one problem run together, kernels and attacks: it is made ready for them once."""
    cases = {place: case for place, item in enumerate(items) if (case := _case_of(item))}
    ordered = [items[place] for place in sorted(cases, key=lambda place: cases[place].group())]
    for place, item in zip(cases, ordered, strict=True):
        items[place] = item


def _case_of(item: pytest.Item) -> Case | None:
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return next((value for value in values if isinstance(value, Case)), None)


class Judge:
    """Builds and judges cases, as the lanes do."""

    def __init__(
        self,
        device: DeviceName,
        ladder: LadderName,
        folder: Path,
        *,
        track: Track = "anything",
        timeouts: TimeoutConfig | None = None,
        cache_dir: Path | None = None,
    ) -> None:
        self._config = EvaluateConfig(
            secret=20_240_607,
            ladder=ladder,
            track=track,
            compile=False,
            trials=1,
            memory_gib=4.0,
            timeouts=timeouts or TIMEOUTS[device],
            # Fewer pairs support no win at all: nothing would be known of those that may not win.
            timing=TimingConfig(min_pairs=10, max_pairs=10, block_ms=4.0),
        )
        self.cache_dir = cache_dir or folder / "cache"
        self._device = device
        self._builder = Builder(self._config, device, str(self.cache_dir))

    @cached_property
    def worker(self) -> DeviceWorker:
        """Started for the first that is judged: what is only built needs none."""
        supply = GPU_SUPPLY if self._device == "cuda" else None
        return DeviceWorker(self._config, self._device, 0, str(self.cache_dir), supply)

    def start(self) -> DeviceWorker:
        """Start what judges, unless it was started."""
        return self.worker

    def __call__(self, case: Case, planted: str = "") -> Evaluation:
        source = (HERE / "problems" / f"{case.problem}.py").read_text(encoding="utf-8")
        problem = Problem(name=case.problem, source=source, dtype=case.dtype)
        return self.judge(problem, Candidate(source=case.text(planted), language=case.language))

    def judge(self, problem: Problem, candidate: Candidate) -> Evaluation:
        """The evaluation of any candidate, built first where its language asks for it."""
        if candidate.language in BUILT_AHEAD:
            built = self._builder.build(problem, candidate)
        else:
            built = nothing_to_build(candidate, cache_dir=self.cache_dir)
        if built.verdict is None:
            return self.worker.evaluate(problem, candidate, built)
        target = self.worker.target()
        return unbuilt(built, built.verdict, problem, candidate, config=self._config, target=target)

    def build(self, case: Case) -> BuildResult:
        """The candidate of a case, built; it is found built by whoever judges it later."""
        source = (HERE / "problems" / f"{case.problem}.py").read_text(encoding="utf-8")
        problem = Problem(name=case.problem, source=source, dtype=case.dtype)
        candidate = Candidate(source=case.text(), language=case.language)
        return self._builder.build(problem, candidate)

    def settle(self) -> None:
        """Wait for children that end, and for those that are forked ahead."""
        self.worker.settle()

    def close(self) -> None:
        if "worker" in vars(self):
            self.worker.close()
        self._builder.close()


@pytest.fixture(scope="session")
def judge_type() -> type[Judge]:
    """For a test that needs an evaluator of its own."""
    return Judge


@pytest.fixture(scope="session")
def judges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, ...], Judge]]:
    made: dict[tuple[str, ...], Judge] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("scratch")))
        yield made
        for judge in made.values():
            judge.close()


@pytest.fixture(scope="session")
def builds(new_cache: Callable[[], Path]) -> Path:
    """The cache of all evaluators: one text is built once, by whichever test is first.

    In the cache of this run, if it has one, so that what is timed alone was built beside others.
    """
    cache = os.environ.get(CACHE_VARIABLE)
    return Path(cache) if cache else new_cache()


@pytest.fixture(scope="session")
def judge_of(
    judges: dict[tuple[str, ...], Judge], tmp_path_factory: pytest.TempPathFactory, builds: Path
) -> Callable[..., Judge]:
    """Returns a function: the one evaluator of a device, a ladder and a track."""

    def of(
        device: DeviceName = "cpu", ladder: LadderName = "strict", track: Track = "anything"
    ) -> Judge:
        key = (device, ladder, track)
        if key not in judges:
            folder = tmp_path_factory.mktemp("-".join(key))
            judges[key] = Judge(device, ladder, folder, track=track, cache_dir=builds)
        return judges[key]

    return of


@pytest.fixture(scope="session")
def judged_on_gpu(
    request: pytest.FixtureRequest, judge_of: Callable[..., Judge], planted_ahead: Path
) -> dict[Case, Future[Evaluation]]:
    """What became of each of the selected cases of a GPU, judged several at a time.

    One evaluator after the other: what one of them verifies is not stopped for another's races.
    """
    cases = [case for item in request.session.items if (case := _case_of(item)) is not None]
    found: dict[Case, Future[Evaluation]] = {}
    on_gpu = sorted((case for case in cases if case.where == "gpu"), key=_evaluator_of)
    for key, alike in groupby(on_gpu, key=_evaluator_of):
        judge = judge_of(*key)
        judge.start()  # once, ahead of threads that would each start one
        with ThreadPoolExecutor(GPU_SUPPLY.in_flight) as threads:
            for case in alike:
                found[case] = threads.submit(judge, case, str(planted_ahead))
    return found


def _evaluator_of(case: Case) -> tuple[DeviceName, LadderName, Track]:
    return case.device, case.ladder, case.track


@pytest.fixture
def judge(
    request: pytest.FixtureRequest, judge_of: Callable[..., Judge]
) -> Callable[..., Evaluation]:
    """Returns a function: the evaluation of a case."""

    def evaluate(case: Case, planted: str = "") -> Evaluation:
        if case.where == "gpu":
            judged: dict[Case, Future[Evaluation]] = request.getfixturevalue("judged_on_gpu")
            return judged[case].result()
        return judge_of(*_evaluator_of(case))(case, planted)

    def noted(case: Case, planted: str = "") -> Evaluation:
        made = evaluate(case, planted)
        request.config.stash.setdefault(SECONDS, []).append((case, made.timeline_s))
        return made

    return noted


@pytest.fixture(scope="session")
def all_attacks() -> list[Case]:
    return read_cases("adversarial")


@pytest.fixture(scope="session")
def all_honest() -> list[Case]:
    return read_cases("honest")


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[Path]:
    """A file that no candidate may change."""
    yield from _kept_file(tmp_path)


@pytest.fixture(scope="session")
def planted_ahead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One for all that are judged on a GPU."""
    yield from _kept_file(tmp_path_factory.mktemp("planted"))


def _kept_file(folder: Path) -> Iterator[Path]:
    path = folder / "tolerances.yaml"
    path.write_text("rtol: 0.001")
    yield path
    assert path.read_text() == "rtol: 0.001"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print both rates: adversarial candidates accepted, honest ones refused; and what it took."""
    outcomes = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
        if name == OUTCOME
    ]
    for suite, bad in (("adversarial", "accepted"), ("honest", "refused")):
        judged = [outcome for outcome in outcomes if outcome.startswith(suite)]
        if judged:
            count = sum(outcome == f"{suite} {bad}" for outcome in judged)
            terminalreporter.write_line(f"{suite} candidates {bad}: {count} of {len(judged)}")
    seconds = terminalreporter.config.stash.get(SECONDS, [])
    if seconds:
        stages = {stage for _, timeline_s in seconds for stage in timeline_s}
        sums_s = {stage: sum(told.get(stage, 0.0) for _, told in seconds) for stage in stages}
        terminalreporter.write_line(f"seconds in each stage, of all candidates: {_longest(sums_s)}")
        timed_s = {
            f"{case.number} {case.name} ({case.where})": told.get("timed", 0.0)
            for case, told in seconds
        }
        terminalreporter.write_line(f"longest timed: {_longest(timed_s, most=NUM_LONGEST)}")


def _longest(seconds: Mapping[str, float], *, most: int | None = None) -> str:
    names = sorted(seconds, key=seconds.__getitem__, reverse=True)[:most]
    return ", ".join(f"{name} {seconds[name]:.1f}" for name in names)
