"""The environment that vLLM is in, and a model of random weights made in it; else a reason."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

VARIABLE = "KOPT_VLLM_PYTHON"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    named = os.environ.get(VARIABLE, "")
    if not named:
        pytest.skip(f"{VARIABLE} names no environment; scripts/vllm_env.sh cpu makes one")
    return Path(named)


@pytest.fixture(scope="session")
def tiny_model(vllm_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a megabyte that speaks noise."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    script = ROOT / "scripts" / "vllm_tiny_model.py"
    subprocess.run([str(vllm_python), str(script), str(folder), "context=16384"], check=True)
    return folder
