"""Setting up a light toolchain: headers, index, bridge, and a trial before it is relied on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kopt.actors.build.compilers import Compilers
from kopt.actors.build.headers import NATIVE, write_headers, write_index
from kopt.actors.build.words import write_words
from kopt.actors.torch_package import torch_package

STEP_S = 600.0
"""For one compilation of the bridge on a busy host."""
_STANDARD = "-std=c++20"
_LAUNCHER = """#!/bin/sh
exec "{python}" -IS "${{0%/*}}/../light_compiler.py" {kind} "{real}" "$@"
"""
_TRIAL = '''
import os, sys, torch
from torch.utils.cpp_extension import load_inline

made = load_inline(name="trial", cpp_sources="""
std::tuple<torch::Tensor, int64_t> f(
    torch::Tensor x, double a, std::optional<torch::Tensor> b, std::vector<torch::Tensor> c,
    at::IntArrayRef d, const std::string& e) {
  TORCH_CHECK(x.dim() == 2, "two, not ", x.dim(), " of ", x.sizes());
  auto y = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] * static_cast<float>(a);
  y = y + c[0].sum(1, true) - 1;
  return {b.has_value() ? y.mul(*b) : y, x.size(-1) + d[1] + static_cast<int64_t>(e.size())};
}
""", functions=["f"], build_directory=sys.argv[1])
x = torch.arange(12.0).reshape(3, 4)
y, n = made.f(x, 2, None, [x], [1, 2], "abc")
assert torch.equal(y, x * 2 + x.sum(1, True) - 1) and n == 9, (y, n)
assert torch.equal(made.f(x, 2, x, (x,), (1, 2), "")[0], (x * 2 + x.sum(1, True) - 1) * x)
for wrong, error in (((x[0], 2.0, None, [x], [1, 2], ""), RuntimeError), ((x,), TypeError)):
    try:
        made.f(*wrong)
    except error as raised:
        assert "two, not 1 of [4]" in str(raised) or error is TypeError, raised
    else:
        raise AssertionError(wrong)
assert os.path.exists(sys.argv[1] + "/main.o.light"), "the light headers do not compile"
os._exit(0)
'''


class CannotProvision(Exception):
    """A light toolchain cannot be set up here; extensions are built as torch builds them."""


def provision(folder: Path, *, compilers: Compilers) -> None:
    """Set a toolchain up in an empty folder, which may be moved afterwards.

    Raises:
        CannotProvision: a step failed; its last words are in the text.
    """
    if compilers.cxx is None:
        raise CannotProvision("there is no C++ compiler (c++) on PATH")
    include = torch_package().folder / "include"
    bridges = ["bridge", "bridge_module", *(["bridge_cuda"] if compilers.nvcc else [])]
    compilations = [_compile(name, folder=folder, cxx=compilers.cxx) for name in bridges]
    try:
        write_headers(folder / "include")
        for name in ("light_compiler.py", "light_errors.py"):
            shutil.copy(Path(__file__).with_name(name), folder)
    except OSError as error:
        raise CannotProvision(f"cannot write the light headers: {error}") from error
    toolkit = None if compilers.nvcc is None else Path(compilers.nvcc).parent.parent / "include"
    command = [compilers.cxx, _STANDARD, "-fPIC", *_includes()]
    with _beside([*compilations, _compile_layout(folder, cxx=compilers.cxx)]):
        try:
            write_index(folder / "index.json", include=include)
        except OSError as error:
            raise CannotProvision(f"cannot read torch's headers: {error}") from error
        write_words(folder / "words", command=command, include=include, toolkit=toolkit)
    _write_layout(folder)
    for kind, name, real in (("cxx", "g++", compilers.cxx), ("nvcc", "nvcc", compilers.nvcc)):
        if real is not None:
            launcher = folder / "bin" / name
            launcher.parent.mkdir(exist_ok=True)
            text = _LAUNCHER.format(python=sys.executable, kind=kind, real=real)
            launcher.write_text(text, encoding="utf-8")
            launcher.chmod(0o755)
    _try_out(folder)


def _includes() -> list[str]:
    from torch.utils.cpp_extension import include_paths

    folders = include_paths("cuda" if torch_package().cuda is not None else "cpu")
    return [word for path in folders for word in ("-isystem", path)] + [
        "-isystem",
        sysconfig.get_path("include"),
    ]


def _compile(name: str, *, folder: Path, cxx: str) -> list[str]:
    """Return the command for one object of the bridge.

    At -O1: what the bridge does is call torch, and -O2 takes a fifth longer to compile.
    """
    words = [cxx, _STANDARD, "-O1", "-fPIC", "-fvisibility=hidden", "-DNDEBUG", f"-I{NATIVE}"]
    return [
        *words,
        *_includes(),
        "-c",
        str(NATIVE / f"{name}.cpp"),
        "-o",
        str(folder / f"{name}.o"),
    ]


def _compile_layout(folder: Path, *, cxx: str) -> list[str]:
    """Return the command for the program that knows torch's layout."""
    libraries = torch_package().folder / "lib"
    source, program = str(NATIVE / "layout.cpp"), str(folder / "layout")
    words = [cxx, _STANDARD, "-O1", *_includes(), source, "-o", program, f"-I{NATIVE}"]
    return [*words, f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-ltorch_cpu", "-lc10"]


def _write_layout(folder: Path) -> None:
    """Ask torch's headers for the sizes and offsets that the light ones rely on."""
    program = folder / "layout"
    printed = _run([str(program)])
    (folder / "include" / "kopt_light" / "layout.h").write_text(printed, encoding="ascii")
    program.unlink()


def _try_out(folder: Path) -> None:
    """Build, import and call an extension through the toolchain."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        environment = {**os.environ, "CXX": str(folder / "bin" / "g++"), "PATH": path}
        _run([sys.executable, "-c", _TRIAL, scratch], environment=environment)


def _run(command: Sequence[str], *, environment: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=STEP_S,
            env=environment,
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotProvision(f"{Path(command[0]).name}: {error}") from error
    if done.returncode != 0:
        raise CannotProvision(f"{Path(command[0]).name}: {_last_words(done.stderr)}")
    return done.stdout


@contextmanager
def _beside(commands: Sequence[Sequence[str]]) -> Iterator[None]:
    """Run compilations side by side, and beside what is done here.

    Raises:
        CannotProvision: one of them failed.
    """
    started = [
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace")
        for command in commands
    ]
    try:
        yield
    except BaseException:
        for process in started:
            process.kill()
        raise
    finally:
        said = [process.communicate()[1] for process in started]
    for command, process, words in zip(commands, started, said, strict=True):
        if process.returncode != 0:
            compiler = Path(command[0]).name
            raise CannotProvision(f"{compiler} compiles no bridge to torch: {_last_words(words)}")


def _last_words(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors[:1] or lines[-1:] or ["failed without a word"])[0][:300]
