"""Which failed builds are remembered: a compiler's word on a source, never the host's doing."""

from __future__ import annotations

from pathlib import Path

import pytest

from kopt.actors.build.failures import is_lasting, read_failure, write_failure

NVCC = """RuntimeError: Error building extension 'k': [1/3] /usr/local/cuda/bin/nvcc -c k.cu -o k.o
k.cu(7): error: identifier "undeclared" is undefined
1 error detected in the compilation of "k.cu".
ninja: build stopped: subcommand failed."""
GCC = "main.cpp:3:12: error: 'undeclared' was not declared in this scope"
LINKER = "/usr/bin/ld: error: undefined symbol: launch(float*)"


@pytest.mark.parametrize("log", [NVCC, GCC, LINKER])
def test_what_a_compiler_refuses_is_remembered(log: str) -> None:
    assert is_lasting(log)


@pytest.mark.parametrize(
    "log",
    [
        "g++: fatal error: Killed signal terminated program cc1plus",
        f"{GCC}\nvirtual memory exhausted: Cannot allocate memory",
        "main.cpp:1: internal compiler error: Segmentation fault",
        "fatal error: error writing to /tmp/x.s: No space left on device",
        "OSError: [Errno 11] Resource temporarily unavailable",
        "main.cpp:2:10: fatal error: found.h: No such file or directory",
        "NameError: name 'torhc' is not defined",
        "",
    ],
)
def test_what_may_be_the_hosts_doing_is_tried_anew(log: str) -> None:
    assert not is_lasting(log)


def test_a_failure_takes_the_place_of_what_its_build_left(tmp_path: Path) -> None:
    folder = tmp_path / "build"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "k.o").write_bytes(b"half")
    write_failure(folder, log=NVCC, sandbox="mount")
    assert [each.name for each in folder.iterdir()] == ["failed.json"]
    assert read_failure(folder) == (NVCC, "mount")


@pytest.mark.parametrize("text", ["", "{}", '{"log": 3, "sandbox": "none"}', '["log"]'])
def test_what_is_no_failure_is_none(tmp_path: Path, text: str) -> None:
    assert read_failure(tmp_path) is None
    (tmp_path / "failed.json").write_text(text)
    assert read_failure(tmp_path) is None
