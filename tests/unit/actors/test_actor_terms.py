"""What authors are told of how and on what their candidates are judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.actors.apis import versions
from kopt.actors.apis.versions import with_versions
from kopt.actors.config import EvaluateConfig, TimeoutConfig
from kopt.actors.terms import terms_of
from kopt.actors.torch_package import TorchPackage
from kopt.ports import Deadlines, Target, Terms

FOUND = {"kopt": "1", "python": "3.12.3", "torch": "2.11.0", "triton": "3.6.0", "ray": None}


def test_terms_are_those_of_the_section() -> None:
    timeouts = TimeoutConfig(build_s=9.0, load_s=8.0, correctness_s=7.0)
    config = EvaluateConfig(ladder="tf32", track="kernels", timeouts=timeouts)
    deadlines = Deadlines(build_s=9.0, load_s=8.0, call_s=7.0)
    assert terms_of(config) == Terms(ladder="tf32", track="kernels", deadlines=deadlines)


def test_versions_are_those_of_what_candidates_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = TorchPackage(folder=Path("torch"), version="2.11.0", git_version="", cuda="13.0")
    monkeypatch.setattr(versions, "torch_package", lambda: torch)
    monkeypatch.setattr(versions, "versions", lambda: FOUND)
    gpu = Target(device="cuda", name="a GPU", arch="sm_90", languages=("triton", "torch"))
    assert with_versions(gpu).versions == (
        ("Python", "3.12.3"),
        ("torch", "2.11.0 (CUDA 13.0)"),
        ("Triton", "3.6.0"),
    )
    cpu = Target(device="cpu", name="a CPU", arch="x86_64", languages=("cpp", "torch"))
    assert with_versions(cpu).versions == (("Python", "3.12.3"), ("torch", "2.11.0"))
    monkeypatch.setattr(versions, "torch_package", lambda: replace(torch, cuda=None))
    assert ("torch", "2.11.0") in with_versions(gpu).versions
