"""The compiler that tries the light headers first: what it runs, and when torch's own way decides.

The real compiler is a shell script here: it notes its arguments, makes the output it is asked for,
and fails, with words, on a source that it is told to refuse.
"""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from kopt.actors.build import light_compiler, light_errors
from kopt.actors.build.light_compiler import as_compilation, read_sources, write_tailored

INDEX = {
    "functions": ["empty_like", "matmul", "relu", "sum"],
    "methods": {
        "sum": {"declared": "Tensor sum() const;", "defined": "/* sum */", "headers": ["s_ops.h"]},
        "view": {"declared": "Tensor view() const;", "defined": "/* v */", "headers": ["v_ops.h"]},
    },
    "factories": {"empty_like": "/* torch::empty_like */"},
}
REAL = """#!/bin/sh
echo "$@" >> "{log}"
light=no
for word in "$@"; do case "$word" in */include) light=yes;; esac; done
previous=
for word in "$@"; do
  if [ "$previous" = -c ] && grep -q "$light-REFUSED\\|ALL-REFUSED" "$word"; then
    echo "$light: error: refused" >&2; exit 7
  fi
  if [ "$previous" = -o ]; then out="$word"; fi
  if [ "$previous" = -c ]; then source="$word"; fi
  if [ "$previous" = -MF ]; then dependencies="$word"; fi
  previous="$word"
done
if [ -n "$dependencies" ]; then grep '^#include' "$source" > "$dependencies"; fi
echo "$light" > "$out"
"""


@dataclass(frozen=True)
class Bench:
    folder: Path
    toolchain: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = self.toolchain / "light_compiler.py"
        command = [sys.executable, "-IS", str(program), "cxx", str(self.folder / "real")]
        return subprocess.run(
            [*command, *arguments], capture_output=True, text=True, cwd=self.folder, check=False
        )

    def compile(self, name: str, source: str) -> subprocess.CompletedProcess[str]:
        (self.folder / f"{name}.cpp").write_text(source)
        return self.run(
            *("-MMD", "-MF", f"{name}.o.d", "-DTORCH_EXTENSION_NAME=x", "-O3"),
            *("-c", f"{name}.cpp", "-o", f"{name}.o"),
        )

    def link(self, *names: str) -> subprocess.CompletedProcess[str]:
        return self.run(*(f"{name}.o" for name in names), "-shared", "-lc10", "-o", "x.so")

    def ran(self) -> list[str]:
        return (self.folder / "log").read_text().splitlines()

    def read(self, name: str) -> str:
        return (self.folder / name).read_text().strip()


@pytest.fixture
def bench(tmp_path) -> Bench:
    toolchain = tmp_path / "toolchain"
    toolchain.mkdir()
    for module in (light_compiler, light_errors):
        shutil.copy(module.__file__, toolchain)
    (toolchain / "index.json").write_text(json.dumps(INDEX))
    for name in ("bridge.o", "bridge_cuda.o"):
        (toolchain / name).touch()
    real = tmp_path / "real"
    real.write_text(REAL.format(log=tmp_path / "log"))
    real.chmod(0o755)
    return Bench(tmp_path, toolchain)


TORCH = "#include <torch/extension.h>\n"


def test_a_source_that_compiles_through_the_light_headers_is_compiled_once(bench) -> None:
    done = bench.compile("main", TORCH)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (ran,) = bench.ran()
    assert ran.startswith("-isystem ")
    assert "-O3" in ran
    assert "-MMD" not in ran
    assert bench.read("main.o") == "yes"
    assert bench.read("main.o.d") == "main.o: main.cpp"
    assert not (bench.folder / "main.o.headers").exists()


def test_a_source_that_the_light_headers_refuse_is_compiled_as_torch_asked(bench) -> None:
    done = bench.compile("main", TORCH + "// yes-REFUSED")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert bench.read("main.o") == "no"
    expected = "-MMD -MF main.o.d -DTORCH_EXTENSION_NAME=x -O3 -c main.cpp -o main.o"
    assert bench.ran()[1:] == [expected]


def test_what_a_failed_compilation_says_is_what_torchs_own_says(bench) -> None:
    done = bench.compile("main", TORCH + "// ALL-REFUSED")
    assert (done.returncode, done.stderr) == (7, "no: error: refused\n")


@pytest.mark.parametrize(
    "source",
    ["TORCH_LIBRARY(x, m) {}", "py::class_<A>(m);", "torch::nn::Linear a;", "#include <vector>"],
)
def test_what_the_light_headers_lack_for_sure_is_not_tried(bench, source) -> None:
    bench.compile("main", source if "#include" in source else TORCH + source)
    assert [line.startswith("-isystem") for line in bench.ran()] == [False]


def test_a_command_that_is_no_extension_passes_unchanged(bench) -> None:
    (bench.folder / "plain.cpp").write_text("int main() {}")
    assert bench.run("-O2", "-c", "plain.cpp", "-o", "plain.o").returncode == 0
    assert bench.ran() == ["-O2 -c plain.cpp -o plain.o"]


def test_light_objects_are_linked_with_the_bridge(bench) -> None:
    bench.compile("main", TORCH)
    assert bench.link("main").returncode == 0
    bridge = bench.toolchain / "bridge.o"
    assert bench.ran()[-1] == f"{bridge} main.o -shared -lc10 -o x.so"


def test_an_extension_is_wholly_light_or_wholly_torchs(bench) -> None:
    bench.compile("main", TORCH)
    bench.compile("other", TORCH + "// yes-REFUSED")
    assert bench.link("main", "other").returncode == 0
    assert bench.read("main.o") == "no"
    assert bench.ran()[-1] == "main.o other.o -shared -lc10 -o x.so"


def test_a_source_that_reads_nothing_of_torchs_fits_light_ones(bench) -> None:
    bench.compile("main", TORCH)
    bench.compile("kernel", "#include <cuda_runtime.h>\n")
    compiled = len(bench.ran())
    assert bench.link("main", "kernel").returncode == 0
    (linked,) = bench.ran()[compiled:]
    assert "bridge.o" in linked
    assert not list(bench.folder.glob("*.stock"))


@pytest.mark.parametrize("include", ["/opt/torch/include/ATen/ATen.h", None])
def test_a_source_that_comes_to_torchs_headers_by_others_is_torchs(bench, include) -> None:
    bench.compile("main", TORCH)
    (bench.folder / "other.cpp").write_text(f"#include {include}\n")
    depfile = ("-MMD", "-MF", "other.o.d") if include else ()
    bench.run(*depfile, "-DTORCH_EXTENSION_NAME=x", "-c", "other.cpp", "-o", "other.o")
    assert bench.link("main", "other").returncode == 0
    assert bench.read("main.o") == "no"


def test_an_object_compiled_anew_loses_its_old_mark(bench) -> None:
    bench.compile("main", TORCH)
    bench.compile("main", TORCH + "// yes-REFUSED")
    bench.link("main")
    assert bench.ran()[-1] == "main.o -shared -lc10 -o x.so"


def test_headers_beside_a_source_are_read_and_are_its_dependencies(bench) -> None:
    (bench.folder / "own.h").write_text(TORCH)
    bench.compile("main", '#include "own.h"\n')
    assert bench.read("main.o.d") == "main.o: main.cpp own.h"
    assert bench.ran()[0].startswith("-isystem")


def test_sources_that_include_each_other_are_read_once(tmp_path) -> None:
    (tmp_path / "a.h").write_text('#include "b.h"\n')
    (tmp_path / "b.h").write_text('#include "a.h"\n#include "missing.h"\n')
    assert [path.name for path in read_sources(tmp_path / "a.h")] == ["a.h", "b.h"]


def test_a_compilation_is_one_source_to_one_object() -> None:
    found = as_compilation(["-MD", "-MF", "d", "-I.", "-c", "a.cu", "-o", "a.o"])
    assert found is not None
    assert (found.source, found.target, found.depfile) == ("a.cu", "a.o", "d")
    assert found.arguments == ["-I.", "-c", "a.cu", "-o", "a.o"]
    assert as_compilation(["a.o", "-shared", "-o", "x.so"]) is None
    assert as_compilation(["-c", "a.cpp", "-c", "b.cpp", "-o", "x"]) is None
    assert as_compilation(["-dumpversion"]) is None


def tailored(bench: Bench, source: str, monkeypatch) -> dict[str, str]:
    monkeypatch.setattr(light_compiler, "TOOLCHAIN", bench.toolchain)
    folder = bench.folder / "tailored"
    write_tailored(source, folder=folder)
    return {path.name: path.read_text() for path in (folder / "kopt_light").iterdir()}


def test_a_source_is_given_the_functions_and_methods_that_it_names(bench, monkeypatch) -> None:
    made = tailored(
        bench, "auto y = torch::empty_like(x); y.sum(); relu (x); a->matmul(b);", monkeypatch
    )
    assert made["tailored_functions.h"].splitlines()[1:] == [
        "#include <ATen/ops/empty_like.h>",
        "#include <ATen/ops/relu.h>",
    ]
    assert "Tensor sum() const;" in made["tailored_methods.h"]
    assert "view" not in made["tailored_methods.h"]
    assert "#include <ATen/ops/s_ops.h>" in made["tailored_definitions.h"]
    assert "/* torch::empty_like */" in made["tailored_factories.h"]


@pytest.mark.parametrize(
    ("source", "switch"),
    [
        ("AT_DISPATCH_FLOATING_TYPES(", "KOPT_DISPATCH"),
        ("c10::BFloat16 x;", "KOPT_HALF"),
        ("AT_DISPATCH_FLOATING_TYPES_AND_HALF(", "KOPT_HALF"),
        ("x.accessor<float, 2>()", "KOPT_ACCESSOR"),
        ("c10::complex<float> z;", "KOPT_COMPLEX"),
    ],
)
def test_costly_types_are_there_only_if_named(bench, monkeypatch, source, switch) -> None:
    assert f"#define {switch} 1" in tailored(bench, source, monkeypatch)["tailored.h"]
    assert f"#define {switch} 0" in tailored(bench, "int x;", monkeypatch)["tailored.h"]


def test_standard_headers_that_torchs_bring_along_are_there_if_needed(bench, monkeypatch) -> None:
    made = tailored(bench, "std::unordered_map<int, int> m; std::cout << 1;", monkeypatch)
    included = [line for line in made["tailored.h"].splitlines() if line.startswith("#include")]
    assert included == ["#include <iostream>", "#include <unordered_map>"]


def test_an_error_that_is_certain_is_told_without_asking_torchs_headers(bench) -> None:
    script = '#!/bin/sh\necho "$@" >> log\necho "x.cpp:2:1: error: \'nonesuch\' WHAT" >&2; exit 7\n'
    (bench.folder / "real").write_text(script.replace("WHAT", "has not been declared"))
    source = "#include <torch/extension.h>\nnonesuch x;\n"
    (bench.toolchain / "words").write_text("torch\nTensor")
    told = bench.compile("x", source)
    assert (told.returncode, "nonesuch" in told.stderr) == (7, True)
    assert len(bench.ran()) == 1
    (bench.toolchain / "words").write_text("torch\nnonesuch")
    assert bench.compile("x", source).returncode == 7
    assert len(bench.ran()) == 1 + 2
    (bench.toolchain / "words").unlink()
    assert bench.compile("x", source).returncode == 7
    assert len(bench.ran()) == 1 + 2 + 2
