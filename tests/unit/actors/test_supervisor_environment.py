"""What a child sees of our environment: what toolchains need, and no keys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kopt.actors.supervisor.environment import child_environment

SECRETS = (
    "AWS_SECRET_ACCESS_KEY",
    "OPENAI_API_KEY",
    "HF_TOKEN",
    "WANDB_API_KEY",
    "SSH_AUTH_SOCK",
    "RAY_ADDRESS",
    "LD_PRELOAD",
    "PYTHONSTARTUP",
    "KOPT_SECRET",
)


@pytest.fixture
def seen(monkeypatch, tmp_path):
    for name in SECRETS:
        monkeypatch.setenv(name, f"planted-{name}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")

    def make(**options):
        return child_environment(
            scratch=tmp_path / "scratch", num_threads=2, cache_dir=tmp_path / "cache", **options
        )

    return make


def test_no_key_is_passed_on_under_any_name(seen) -> None:
    environment = seen()
    assert not set(SECRETS) & set(environment)
    assert not [value for value in environment.values() if "planted-" in value]


def test_the_device_and_the_threads_are_passed_on(seen) -> None:
    environment = seen()
    assert environment["CUDA_VISIBLE_DEVICES"] == "3"
    assert environment["OMP_NUM_THREADS"] == "2"


def test_home_and_temporary_files_are_the_childs_own(seen, tmp_path) -> None:
    environment = seen()
    assert environment["HOME"] == environment["TMPDIR"] == str(tmp_path / "scratch")


def test_a_candidate_builds_in_its_own_folder_and_the_reference_in_the_cache(
    seen, tmp_path
) -> None:
    mine = seen(build_dir=tmp_path / "mine")
    for name in ("KOPT_BUILD_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR"):
        assert Path(mine[name]).is_relative_to(tmp_path / "mine")
    assert Path(mine["TORCHINDUCTOR_CACHE_DIR"]).is_relative_to(tmp_path / "mine")
    reference = seen()
    assert "KOPT_BUILD_DIR" not in reference
    assert Path(reference["TORCHINDUCTOR_CACHE_DIR"]).is_relative_to(tmp_path / "cache")


def test_a_candidate_sees_no_key_in_its_process(judge, candidate, monkeypatch) -> None:
    body = """
        import os
        raise RuntimeError("sees " + ",".join(sorted(os.environ)) + " end")
    """
    made = judge(candidate(body))
    names = made.verdict.log.rpartition("sees ")[2].partition(" end")[0].split(",")
    passed_on = set(child_environment(scratch=Path("s"), num_threads=1, cache_dir=Path("c")))
    extra = {
        "KOPT_BUILD_DIR",
        "TORCH_EXTENSIONS_DIR",
        "TRITON_CACHE_DIR",
        "TORCHINDUCTOR_CACHE_DIR",
    }
    # What torch and OpenMP set in their own process when they are loaded is no secret of ours.
    own = {name for name in names if name.startswith(("KMP_", "TORCH", "TRITON", "PYTORCH_"))}
    assert set(names) <= passed_on | extra | own
    assert not {name for name in names if name in os.environ and "KEY" in name}
