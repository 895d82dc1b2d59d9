"""The pool on a real local Ray, with the scripted server in vLLM's place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kopt.cli import main
from kopt.data.journal import read_events
from kopt.testing.fake_vllm import FakeVllm

pytestmark = [pytest.mark.ray, pytest.mark.slow]

SEARCHES = 2
ITERATIONS = 3
WAIT_S = 120.0


def run_words(fake: FakeVllm, out: Path, *, name: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "kopt",
        "run",
        "problem=builtin/softmax",
        "seed=[0,1]",
        "programmer=vllm",
        f"programmer.vllm.python={fake.python}",
        f"programmer.model={fake.model}",
        "programmer.vllm.replicas=2",
        "programmer.vllm.restart_backoff_s=0.1",
        "programmer.vllm.affinity_slack=2",
        "programmer.backoff_s=0.05",
        "programmer.logprobs=true",
        "search=best_of_n",
        f"search.iterations={ITERATIONS}",
        "search.candidates=1",
        "evaluate.compile=false",
        "evaluate.trials=1",
        f"out={out}",
        f"name={name}",
        "--json",
    ]


@pytest.mark.soak  # test_vllm_pool.py kills a server within seconds, tests/vllm a real one
def test_a_search_does_not_notice_that_a_server_was_killed_and_replaced(tmp_path: Path) -> None:
    fake = FakeVllm(folder=tmp_path / "env", delay_s=1.5).make()
    process = subprocess.Popen(
        run_words(fake, tmp_path, name="killed"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    give_up_s = time.monotonic() + WAIT_S
    victim = 0
    while not victim and time.monotonic() < give_up_s and process.poll() is None:
        time.sleep(0.05)
        asked = [each for each in fake.requests() if "seed" in each["body"]]
        victim = int(asked[0]["pid"]) if asked else 0
    assert victim, process.communicate()[1]
    os.kill(victim, signal.SIGKILL)
    out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert "started again" in err
    assert "prefix cache hit rate" in err
    events = [record.body for record in read_events(tmp_path / "killed")]
    made = [body.candidate for body in events if body.kind == "candidate_made"]
    assert len(made) == len(set(made)) == SEARCHES * ITERATIONS
    answers = [body for body in events if body.kind == "answer_received"]
    assert len(answers) == SEARCHES * ITERATIONS, "each is answered once, sent again or not"
    assert all(body.trace for body in answers)
    (serving,) = json.loads(out)["serving"]
    assert serving["restarts"] == 1
    assert serving["prefix_hit_rate"] == pytest.approx(0.5, abs=0.01)


def test_bad_input_is_one_line_and_starts_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fake = FakeVllm(folder=tmp_path / "env").make()
    words = run_words(fake, tmp_path / "runs", name="bad")
    words = [
        f"programmer.vllm.python={sys.executable}" if "vllm.python" in word else word
        for word in words
    ]
    assert main(words[words.index("run") :]) == 2
    said = capfd.readouterr().err
    assert "found no package vllm" in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_a_server_that_cannot_start_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    words = "ValueError: No available memory for the cache blocks."
    fake = FakeVllm(folder=tmp_path / "env", last_words=words).make()
    done = subprocess.run(
        run_words(fake, tmp_path, name="memory"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "No available memory for the cache blocks" in done.stderr
    assert "lower programmer.vllm.max_model_len" in done.stderr
    assert "no server came up" in done.stderr
