"""The tables of attacks and honest kernels: what an entry says, the text that it makes."""

from __future__ import annotations

import ast
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path

from kopt.actors.devices.base import DeviceName
from kopt.candidate import Language
from kopt.evaluation import Track
from kopt.ladder import LadderName
from kopt.problem import Dtype

HERE = Path(__file__).parent
BEFORE_CLOCKS = ("incorrect", "crashed", "compile_failed")
"""Verdicts that come before anything is timed: other tests may run beside such attacks."""
AFTER_CLOCKS = ("track",)
"""Checks of what was timed."""

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
