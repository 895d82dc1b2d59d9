"""A whole run answered in rounds: suspended, moved to another folder, gone on with, to its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kopt.cli.exit_codes import DONE, SUSPENDED
from kopt.data.journal import read_events
from kopt.data.rundir import RunDir

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.soak]

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * {factor}


def get_inputs():
    return [torch.rand(64, 256)]
"""
ANSWER = """\
prompt: {prompt}
strategy: idea {number}
language: torch

```python
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x) * {factor} + {number} - {number}
```
"""


def kopt(*arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kopt", *arguments, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KOPT_CACHE_DIR": str(cache)},
    )


def answer_all(run: Path, *, number: int) -> list[str]:
    prompts = sorted((run / "mailbox" / "prompts").glob("*.md"))
    for path in prompts:
        factor = 2 if path.stem.startswith("two") else 3
        text = ANSWER.format(prompt=path.stem, number=number, factor=factor)
        (run / "mailbox" / "answers" / path.name).write_text(text)
    return [path.stem for path in prompts]


def test_a_run_is_played_in_rounds_on_machines_that_keep_nothing(tmp_path: Path) -> None:
    problems = []
    for name, factor in (("two", 2), ("three", 3)):
        path = tmp_path / f"{name}.py"
        path.write_text(PROBLEM.format(factor=factor))
        problems.append(str(path))
    first = kopt(
        "run",
        f"problem=[{','.join(problems)}]",
        "programmer=mailbox",
        "programmer.wait_s=0",
        "search=best_of_n",
        "search.iterations=2",
        "search.candidates=1",
        "max_in_flight_per_search=1",
        "evaluate.compile=false",
        "evaluate.trials=1",
        "device=cpu",
        f"out={tmp_path / 'here'}",
        "name=run",
        cache=tmp_path / "cache0",
    )
    assert first.returncode == SUSPENDED, first.stderr
    assert "suspended: 2 prompt(s) wait for answers in " in first.stderr
    assert "Traceback" not in first.stderr
    told = json.loads(first.stdout)
    assert (told["ended"], told["awaiting"]) == (False, 2)

    run = tmp_path / "here" / "run"
    asked: list[str] = []
    for number in (1, 2):
        asked += answer_all(run, number=number)
        moved = tmp_path / f"there{number}" / "run"
        moved.parent.mkdir()
        run.rename(moved)
        run = moved
        for path in problems:  # the run folder needs nothing outside it
            Path(path).unlink(missing_ok=True)
        gone_on = kopt("resume", str(run), cache=tmp_path / f"cache{number}")
        assert gone_on.returncode == (SUSPENDED if number == 1 else DONE), gone_on.stderr
        assert "Traceback" not in gone_on.stderr
    assert len(asked) == len(set(asked)) == 4
    assert json.loads(gone_on.stdout)["ended"] is True
    assert RunDir(run).status() == "ended"
    kinds = [record.body.kind for record in read_events(run)]
    assert kinds.count("expansion_asked") == 4
    assert kinds.count("verdict") == kinds.count("told") == 4
    assert kinds.count("expansion_cancelled") == 0
    again = kopt("replay", str(run), cache=tmp_path / "cache9")
    assert again.returncode == DONE, again.stderr
