"""Inductor takes the processor's vectors as given where the compiler knows them all."""

from __future__ import annotations

import os

import pytest

from kopt.actors.build import inductor
from kopt.actors.build.inductor import (
    FLAGS,
    VECTORS_VARIABLE,
    has_vectors,
    inductor_environment,
)


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(VECTORS_VARIABLE, raising=False)
    has_vectors.cache_clear()
    yield
    has_vectors.cache_clear()


@pytest.fixture
def compiler(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """Returns a function: makes a compiler that knows all flags but those given.

    It returns the file of what the compiler was asked.
    """

    def made(*refused: str, name: str = "g++"):
        said = tmp_path / f"said-to-{name}"
        case = "|".join(refused) or "none"
        path = tmp_path / name
        path.write_text(
            f'#!/bin/sh\necho "$@" >> {said}\n'
            f"for flag; do case $flag in {case}) exit 1;; esac; done\n"
        )
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return said

    return made


@pytest.mark.parametrize(
    ("flags", "asked"),
    [
        ("fpu avx2", ["-mavx2"]),
        ("fpu avx2 avx512f avx512bw", ["-mavx2", "-mavx512f", "-mavx512bw"]),
    ],
)
def test_a_compiler_that_knows_what_the_processor_has_is_relied_on(
    compiler, monkeypatch, flags, asked
) -> None:
    said = compiler()
    monkeypatch.setattr(inductor, "processor", lambda: f"model name : a CPU\nflags : {flags}")
    assert inductor_environment(os.environ)[VECTORS_VARIABLE] == "1"
    assert inductor_environment(os.environ)[VECTORS_VARIABLE] == "1"
    (line,) = said.read_text().splitlines()  # it is asked once
    assert set(asked) <= set(line.split())
    assert ("-mavx512f" in line.split()) == ("avx512f" in flags)


def test_one_that_does_not_leaves_it_to_inductor(compiler, monkeypatch) -> None:
    compiler("-mavx512dq")
    monkeypatch.setattr(inductor, "processor", lambda: "flags : avx2 avx512f")
    assert VECTORS_VARIABLE not in inductor_environment(os.environ)


@pytest.mark.parametrize("said", ["Features : fp asimd sve", "flags : fpu sse2", "aarch64"])
def test_so_does_a_processor_without_vectors_that_are_known(compiler, monkeypatch, said) -> None:
    asked = compiler()
    monkeypatch.setattr(inductor, "processor", lambda: said)
    assert VECTORS_VARIABLE not in inductor_environment(os.environ)
    assert not asked.exists()


def test_so_does_a_host_without_a_compiler(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(inductor, "processor", lambda: "flags : avx2")
    assert VECTORS_VARIABLE not in inductor_environment(os.environ)


@pytest.mark.parametrize("value", ["0", "1"])
def test_what_the_user_says_counts(compiler, monkeypatch, value) -> None:
    compiler("-mavx2")
    monkeypatch.setattr(inductor, "processor", lambda: "flags : avx2")
    given = {"PATH": os.environ["PATH"], VECTORS_VARIABLE: value}
    assert (given | inductor_environment(given))[VECTORS_VARIABLE] == value


@pytest.mark.parametrize(("refused", "told"), [((), {"1"}), (("-mfma",), set())])
def test_the_compiler_that_inductor_will_use_is_asked(compiler, monkeypatch, refused, told) -> None:
    of_path, named = compiler(), compiler(*refused, name="c++-of-ours")
    monkeypatch.setattr(inductor, "processor", lambda: "flags : avx2")
    path = str(named.with_name("c++-of-ours"))
    given = inductor_environment({**os.environ, "CXX": path})
    assert {given[name] for name in [VECTORS_VARIABLE] if name in given} == told
    assert named.exists()
    assert not of_path.exists()


@pytest.mark.slow
def test_the_flags_are_those_that_inductor_gives() -> None:
    from torch._inductor import cpu_vec_isa as of_inductor

    assert set(FLAGS["avx2"]) == set(of_inductor.VecAVX2._arch_flags.split())
    assert set(FLAGS["avx512f"]) == set(of_inductor.VecAVX512._arch_flags.split())
