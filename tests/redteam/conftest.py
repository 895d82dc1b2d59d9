"""The tables read, the evaluator that judges their entries, and both rates at the end."""

from __future__ import annotations

import ast
import shutil
import tempfile
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kopt.actors.builder import BUILT_AHEAD, Builder, nothing_to_build, unbuilt
from kopt.actors.config import EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.actors.devices.base import DeviceName
from kopt.candidate import Candidate, Language
from kopt.evaluation import Evaluation, Track
from kopt.ladder import LadderName
from kopt.problem import Dtype, Problem

HERE = Path(__file__).parent
BEFORE_CLOCKS = ("incorrect", "crashed", "compile_failed")
"""Verdicts that come before anything is timed: other tests may run beside such attacks."""
AFTER_CLOCKS = ("track", "structure")
"""Checks of what was timed."""
OUTCOME = "redteam-outcome"
"""Name of the property by which a test says what became of its candidate."""

TIMEOUTS: dict[DeviceName, TimeoutConfig] = {
    "cpu": TimeoutConfig(
        build_s=120.0, load_s=30.0, correctness_s=3.0, timing_s=10.0, reference_s=60.0
    ),
    "cuda": TimeoutConfig(
        build_s=300.0, load_s=120.0, correctness_s=30.0, timing_s=60.0, reference_s=120.0
    ),
}

CPP = '''
import ctypes
import os
import subprocess

TEXT = r"""{text}"""


def built():
    path = os.path.join(os.environ["KOPT_BUILD_DIR"], "kernel.so")
    if not os.path.exists(path):
        with open(path + ".cpp", "w") as file:
            file.write(TEXT)
        flags = ["-O2", "-fopenmp", "-pthread", "-shared", "-fPIC"]
        subprocess.run(["g++", *flags, path + ".cpp", "-o", path], check=True)
    return ctypes.CDLL(path).kernel


def at(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


kernel = built()
'''


@dataclass(frozen=True, kw_only=True)
class Case:
    """One entry of a table."""

    number: str
    """Class: 1 to 60, or F1 to F12 of honest kernels that harnesses refuse."""
    name: str
    problem: str
    """File of `problems/`."""
    kinds: tuple[str, ...] = ("correct",)
    """Verdicts that are right."""
    check: str = ""
    """Beginning of the check that refuses it; empty for any."""
    where: str = "cpu"
    """`cpu`, or `gpu` for what needs a CUDA device."""
    language: Language = "torch"
    dtype: Dtype | None = None
    ladder: LadderName = "strict"
    track: Track = "anything"
    says: str = ""
    """Check that must fail, whatever the verdict: `fallback` decides none."""
    hidden: bool = False
    slow: bool = False
    needs: str = ""
    """A program without which it is skipped."""
    known_open: str = ""
    """Why it is not judged as it must be yet; it is then expected to fail."""
    before: str = ""
    body: str = ""
    cpp: str = ""
    """Text of a C++ library with a function `kernel`, built and loaded ahead of the class."""
    source: str = ""

    @property
    def device(self) -> DeviceName:
        return "cuda" if self.where == "gpu" else "cpu"

    @property
    def is_timed(self) -> bool:
        """Whether its verdict may hang on a clock, so that nothing may run beside it."""
        if self.check.startswith("static:"):
            return False
        return self.check in AFTER_CLOCKS or not set(self.kinds).issubset(BEFORE_CLOCKS)

    def group(self) -> tuple[str, ...]:
        """Cases of one group share the session of their problem."""
        return (self.device, self.ladder, self.track, self.problem, str(self.dtype))

    def text(self, planted: str = "") -> str:
        """The candidate's source; `planted` is the path of a file that is not its own."""
        made = self.source or _as_candidate(
            (HERE / "problems" / f"{self.problem}.py").read_text(encoding="utf-8"),
            before=(CPP.replace("{text}", self.cpp) if self.cpp else "") + self.before,
            body=self.body,
        )
        made = made.replace("@PLANTED@", planted)
        if not self.hidden:
            return made
        return f"exec({made[::-1]!r}[::-1], globals())\nModelNew = dict(globals())['ModelNew']\n"


def _as_candidate(problem: str, *, before: str, body: str) -> str:
    """The reference as ModelNew, with another forward in place of its own."""
    text = problem.replace("class Model(", "class ModelNew(")
    for name in ("get_inputs", "get_init_inputs"):
        text = text.replace(f"def {name}(", f"def _{name}(")
    if body.strip():
        forward = next(
            node
            for node in ast.walk(ast.parse(problem))
            if isinstance(node, ast.FunctionDef) and node.name == "forward"
        )
        names = ", ".join(argument.arg for argument in forward.args.args)
        lines = textwrap.indent(textwrap.dedent(body).strip(), " " * 4)
        text += f"\n\nright = ModelNew.forward\n\n\ndef forward({names}):\n{lines}\n"
        text += "\n\nModelNew.forward = forward\n"
    return textwrap.dedent(before) + "\n" + text


def read_cases(folder: str) -> list[Case]:
    """The entries of a table, those of one problem together."""
    entries = [
        entry
        for path in sorted((HERE / folder).glob("*.toml"))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
    ]
    cases = [Case(**{**each, "kinds": tuple(each.get("kinds", ("correct",)))}) for each in entries]
    return sorted(cases, key=Case.group)


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
        self.cache_dir = folder / "cache"
        self.worker = DeviceWorker(self._config, device, 0, str(self.cache_dir))
        self._builder = Builder(self._config, device, str(self.cache_dir))

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

    def close(self) -> None:
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
def judge_of(
    judges: dict[tuple[str, ...], Judge], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Judge]:
    """Returns a function: the one evaluator of a device, a ladder and a track."""

    def of(
        device: DeviceName = "cpu", ladder: LadderName = "strict", track: Track = "anything"
    ) -> Judge:
        key = (device, ladder, track)
        if key not in judges:
            folder = tmp_path_factory.mktemp("-".join(key))
            judges[key] = Judge(device, ladder, folder, track=track)
        return judges[key]

    return of


@pytest.fixture
def judge(judge_of: Callable[..., Judge]) -> Callable[..., Evaluation]:
    """Returns a function: the evaluation of a case."""

    def evaluate(case: Case, planted: str = "") -> Evaluation:
        return judge_of(case.device, case.ladder, case.track)(case, planted)

    return evaluate


@pytest.fixture(scope="session")
def all_attacks() -> list[Case]:
    return read_cases("adversarial")


@pytest.fixture(scope="session")
def all_honest() -> list[Case]:
    return read_cases("honest")


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[Path]:
    """A file that no candidate may change."""
    path = tmp_path / "tolerances.yaml"
    path.write_text("rtol: 0.001")
    yield path
    assert path.read_text() == "rtol: 0.001"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print both rates: adversarial candidates accepted, honest ones refused."""
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
