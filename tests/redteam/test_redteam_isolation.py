"""What a candidate can see of others and leave for itself: nothing (classes 8, 9, 26, 57, 59)."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from kopt.candidate import Candidate
from kopt.problem import Problem

PROBLEM = Problem(
    name="affine",
    source=(Path(__file__).parent / "problems" / "affine.py").read_text(encoding="utf-8"),
)


@pytest.fixture
def look(judge_of):
    """Returns a function: the evaluation of the reference with something ahead of its forward."""

    def evaluate(body: str):
        text = PROBLEM.source.replace("class Model(", "class ModelNew(")
        lines = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
        text = text.replace("def forward(self, x):\n", f"def forward(self, x):\n{lines}\n")
        hidden = f"exec({text[::-1]!r}[::-1], globals())\nModelNew = dict(globals())['ModelNew']\n"
        return judge_of().judge(PROBLEM, Candidate(source=hidden, language="torch"))

    return evaluate


def needs(made, *levels: str) -> None:
    missing = set(levels) - set(made.sandbox.split("+"))
    if missing:
        pytest.skip(f"not in force here: {', '.join(sorted(missing))}")


PLACES = ("/dev/shm", "/tmp", "/var/tmp", "{home}", "{build}", "{build}/..")


@pytest.fixture
def answer() -> Iterator[str]:
    """A name of a file; where nothing keeps a candidate from writing it, it is removed."""
    name = f"kopt-answer-{os.getpid()}"
    yield name
    for place in PLACES:
        Path(place, name).unlink(missing_ok=True)


def test_redteam_answers_of_an_earlier_run_are_not_found_again(look, answer) -> None:  # 26
    body = f"""
        import glob, os
        home, build = os.environ["HOME"], os.environ["KOPT_BUILD_DIR"]
        places = [place.format(home=home, build=build) for place in {PLACES}]
        if not hasattr(self, "looked"):
            self.looked = True
            found = [path for place in places for path in glob.glob(place + "/{answer}")]
            assert not found, f"found {{found}}"
            for place in places:
                try:
                    open(place + "/{answer}", "w").close()
                except OSError:
                    pass
    """
    first = look(body)
    needs(first, "namespace", "mount")
    second = look(body)
    for made in (first, second):
        assert made.verdict.kind in ("correct", "cheated"), made.verdict.reason


def test_redteam_builds_and_scratch_of_others_are_out_of_sight(look) -> None:  # 3, 59
    made = look("import os\nraise RuntimeError('another candidate, so that there is one')")
    body = """
        import glob, os
        build, home = os.environ["KOPT_BUILD_DIR"], os.environ["HOME"]
        cache = os.path.dirname(os.path.dirname(os.path.dirname(build)))
        seen = glob.glob(f"{cache}/build/*/*") + glob.glob(f"{cache}/inductor/*")
        seen += glob.glob(os.path.dirname(home) + "/*")
        raise RuntimeError(f"sees others: {set(seen) - {build, home}}")
    """
    made = look(body)
    needs(made, "namespace", "mount")
    assert made.verdict.kind == "crashed"
    assert made.verdict.reason.endswith("sees others: set()"), made.verdict.reason


def test_redteam_nothing_but_its_own_folders_can_be_written(look, tmp_path) -> None:  # 9
    body = f"""
        import kopt, os, sys, torch
        places = [{str(tmp_path)!r}, "/tmp", "/var/tmp", os.path.dirname(kopt.__file__),
                  os.path.dirname(torch.__file__), os.path.dirname(os.environ["HOME"])]
        wrote = []
        for place in places:
            try:
                path = place + "/kopt-written"
                open(path, "w").close()
                os.unlink(path)
                wrote.append(place)
            except OSError:
                pass
        raise RuntimeError(f"wrote: {{wrote}}")
    """
    made = look(body)
    if not {"mount", "landlock"} & set(made.sandbox.split("+")):
        pytest.skip("files are not read-only here")
    assert made.verdict.kind == "crashed"
    assert made.verdict.reason.endswith("wrote: []"), made.verdict.reason


def test_redteam_no_address_can_be_reached(look) -> None:  # 57
    body = """
        import socket
        reached = []
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            try:
                with socket.socket(family, socket.SOCK_DGRAM) as caller:
                    caller.connect((host, 22))
                    caller.send(b"x")
                reached.append(host)
            except OSError:
                pass
        raise RuntimeError(f"reached: {reached}")
    """
    made = look(body)
    if not {"namespace", "seccomp"} & set(made.sandbox.split("+")):
        pytest.skip("the network is not cut off here")
    assert made.verdict.reason.endswith("reached: []"), made.verdict.reason


def test_redteam_no_process_but_its_own_can_be_signalled(look) -> None:  # 8
    body = """
        import os
        reached = []
        own = {int(task) for task in os.listdir("/proc/self/task")}
        for pid in set(range(1, 70_000)) - own:
            try:
                os.kill(pid, 0)
                reached.append(pid)
            except OSError:
                pass
        raise RuntimeError(f"reached: {reached}")
    """
    made = look(body)
    needs(made, "user", "pid")
    assert made.verdict.reason.endswith("reached: []"), made.verdict.reason
