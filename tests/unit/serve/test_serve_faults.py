"""The service over HTTP under injected faults: `scripts/bench_serve.py`, small."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "bench_serve.py"


@pytest.mark.slow
def test_every_mixed_request_is_answered_once_whatever_fails() -> None:
    command = [sys.executable, str(SCRIPT), "requests=150", "completions=64", "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr[-2_000:]
    found = json.loads(run.stdout.splitlines()[-1])
    assert (found["requests"], found["answered_once"], found["contradictions"]) == (150, 150, 0)
    assert found["refused"] > 0
    assert found["done no_candidate"] > 0
    assert found["failed"] > 0
