"""`kopt run programmer=vllm` on the CPU: whole, and tidy although a random model writes no code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kopt.data.journal import read_events

pytestmark = [pytest.mark.vllm, pytest.mark.ray, pytest.mark.slow]


def test_a_run_with_a_model_of_noise_ends_and_says_so(
    vllm_python: Path, tiny_model: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "kopt",
            "run",
            "problem=builtin/softmax",
            "programmer=vllm",
            f"programmer.vllm.python={vllm_python}",
            f"programmer.model={tiny_model}",
            "programmer.max_tokens=48",
            "programmer.logprobs=true",
            "programmer.return_token_ids=true",
            'programmer.vllm.arguments=["--enforce-eager"]',
            "search=best_of_n",
            "search.iterations=3",
            "search.candidates=2",
            "evaluate.compile=false",
            f"out={tmp_path}",
            "name=noise",
            "--json",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "held no candidate" in done.stderr
    assert "prefix cache hit rate" in done.stderr
    (serving,) = json.loads(done.stdout)["serving"]
    assert serving["prefix_hit_rate"] > 0
    run = tmp_path / "noise"
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["serving"] == [serving]
    answers = [each.body for each in read_events(run) if each.body.kind == "answer_received"]
    assert answers
    assert all(each.fault for each in answers)
    trace = json.loads((run / "artefacts" / answers[0].trace[:2] / answers[0].trace).read_text())
    assert len(trace["token_ids"]) == len(trace["logprobs"])
