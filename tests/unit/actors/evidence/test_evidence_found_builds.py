"""What a profiler finds of a candidate's builds: whole ones, none, kernels compiled ahead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kopt.actors.build.cache import BuildCache
from kopt.actors.build.compilers import build_key
from kopt.actors.build.gpu_facts import named_gpu
from kopt.actors.build.triton_order import triton_build_key
from kopt.actors.config import EvaluateConfig
from kopt.actors.evidence import found_builds
from kopt.actors.evidence.found_builds import FoundBuilds
from kopt.actors.evidence.subjects import Subject
from kopt.actors.evidence.workbench import Workbench
from kopt.candidate import Candidate
from kopt.problem import Problem

PROBLEM = Problem(name="p", source="class Model: ...")


@pytest.fixture
def bench(tmp_path) -> Iterator[Workbench]:
    made = Workbench(EvaluateConfig(), device="cpu", cache_dir=tmp_path / "cache", is_lasting=False)
    yield made
    made.close()


def subject(language: str) -> Subject:
    candidate = Candidate(source=f"class ModelNew: ...  # {language}", language=language)
    return Subject(problem=PROBLEM, candidate=candidate)


def keep(tmp_path, key: str, name: str) -> None:
    cache = BuildCache(tmp_path / "cache" / "build")
    with cache.entry(key) as entry:
        (entry.folder / name).parent.mkdir(exist_ok=True)
        (entry.folder / name).write_text("built")
        cache.keep(entry)


def test_a_whole_build_is_used_where_it_is(bench, tmp_path) -> None:
    one = subject("cpp")
    keep(tmp_path, build_key(one.candidate.source, language="cpp"), "own.so")
    with ExitStack() as folders:
        found = FoundBuilds(bench, cache_dir=tmp_path / "cache").of(one, folders)
        assert found.is_whole
        assert (found.folder / "own.so").read_text() == "built"


def test_what_nobody_built_gets_a_folder_that_goes_with_the_profile(bench, tmp_path) -> None:
    with ExitStack() as folders:
        found = FoundBuilds(bench, cache_dir=tmp_path / "cache").of(subject("cpp"), folders)
        assert not found.is_whole
        assert list(found.folder.iterdir()) == []
    assert not found.folder.exists()


def test_kernels_that_were_compiled_ahead_are_copied(bench, tmp_path, monkeypatch) -> None:
    gpu = named_gpu("9.0")
    assert gpu is not None
    monkeypatch.setattr(found_builds, "gpu_of_node", lambda: gpu)
    monkeypatch.setattr(bench, "device", "cuda")
    one = subject("triton")
    mode = bench.config.module_mode
    key = triton_build_key(problem=PROBLEM, candidate=one.candidate, gpu=gpu, mode=mode)
    builds = FoundBuilds(bench, cache_dir=tmp_path / "cache")
    with ExitStack() as folders:
        assert list(builds.of(one, folders).folder.iterdir()) == []
    keep(tmp_path, key, "triton/k.cubin")
    with ExitStack() as folders:
        found = builds.of(one, folders)
        assert not found.is_whole  # the rest is kept beside
        assert (found.folder / "triton" / "k.cubin").read_text() == "built"


def test_a_reference_that_builds_extensions_has_the_toolchain_and_the_time_for_it(
    bench, tmp_path, monkeypatch
) -> None:
    provided = []
    monkeypatch.setattr(found_builds, "provide_toolchain", provided.append)
    builds = FoundBuilds(bench, cache_dir=tmp_path / "cache")
    extends = Problem(name="e", source="from torch.utils.cpp_extension import load_inline")
    with ExitStack() as folders:
        assert not builds.of(subject("torch"), folders).builds
        assert provided == []
        one = Subject(problem=extends, candidate=subject("torch").candidate)
        assert builds.of(one, folders).builds
        assert provided == [tmp_path / "cache"]
        assert builds.of(subject("cpp"), folders).builds  # nobody built it yet
