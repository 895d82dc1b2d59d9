"""The README's commands: each is run, planned, or says in its comment what it needs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from kopt.cli import main
from kopt.cli.compose import compose_config
from kopt.cli.dispatch import COMMANDS
from kopt.data.evidence_json import evidence_to_json
from kopt.data.fleet_file import FleetJob, write_fleet_file
from kopt.data.rundir import RunDir
from kopt.search.config import MctsConfig
from kopt.testing.fakes import InstantEvaluator, ScriptedProgrammer
from kopt.testing.sample_run import SAMPLE_EVIDENCE, write_sample_run
from kopt.testing.small_fleet import run_in_folder, small_problem, small_tasks

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BASH = re.compile(r"^```bash\n(.*?)^```$", re.M | re.S)
PYTHON = re.compile(r"^```python\n# (?P<name>\S+)\n(?P<code>.*?)^```$", re.M | re.S)
COMMENT = re.compile(r"\s+# (?P<text>.*)$")
READING = {
    *("cache", "export", "findings", "problems", "prompt", "replay", "report", "stats"),
    "watch",
}
"""Commands that only read: run here, on run folders that a test wrote."""
JUDGING = {"doctor", "eval", "profile", "resume", "run", "serve", "verify"}
"""Commands that start processes: their own tests run them, and the last test here does."""
KERNEL = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x, weight, bias):
        return torch.sigmoid(x @ weight.mean(dim=1) + bias.mean())
"""
IN_SAMPLES = {"best_of_n-rewriter": "greedy-openai"}
"""Names of README's runs to those that the test's runs have in their place."""
DRIVEN = "runs/driven"
"""A run of a real driver, whose journal gives its tree again: the samples' are written by hand."""


@dataclass(frozen=True)
class Command:
    """A line of a block."""

    text: str
    comment: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)

    @property
    def kopt(self) -> str | None:
        return self.words[1] if self.words[0] == "kopt" else None

    @property
    def needs(self) -> bool:
        return "needs " in self.comment


def commands() -> list[Command]:
    found = []
    for block in BASH.findall(README):
        for line in block.replace("\\\n", " ").splitlines():
            comment = COMMENT.search(line)
            text = COMMENT.sub("", line).strip()
            found.append(Command(text, comment["text"] if comment else ""))
    return [command for command in found if command.text]


def of_kind(*names: str) -> list[Command]:
    return [command for command in commands() if command.kopt in names]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the README's commands name."""
    folder = tmp_path_factory.mktemp("place")
    (block,) = PYTHON.finditer(README)
    for name in (block["name"], "my_model.py"):
        (folder / name).write_text(block["code"], encoding="utf-8")
    for name in ("my_kernel.py", "my_candidate.py"):
        (folder / name).write_text(KERNEL, encoding="utf-8")
    (folder / "profile.json").write_text(json.dumps(evidence_to_json(SAMPLE_EVIDENCE)))
    for level, name in (("level1", "1_A.py"), ("level2", "18_B.py")):
        path = folder / "KernelBench" / "KernelBench" / level / name
        path.parent.mkdir(parents=True)
        path.write_text(block["code"], encoding="utf-8")
    sweeps = {word for command in of_kind("run") for word in command.words if "-m" in command.words}
    for name in sorted(set(re.findall(r"runs/(\w+)", README))):
        runs = folder / "runs" / name
        if f"name={name}" in sweeps:
            write_sample_run(runs / "0")
            write_fleet_file(runs, [FleetJob(folder="0", arm="mcts-openai", overrides=())])
        else:
            write_sample_run(runs)
    driven = folder / DRIVEN
    driven.mkdir()
    RunDir(driven).keep_problem(small_problem())
    run_in_folder(
        driven,
        small_tasks(MctsConfig(iterations=3, candidates=2)),
        programmer=ScriptedProgrammer(),
        evaluator=InstantEvaluator(),
    )
    return folder


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place)
    monkeypatch.setenv("KOPT_KERNELBENCH", str(place / "KernelBench"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    return place


def test_every_command_is_one_that_there_is() -> None:
    assert {*READING, *JUDGING} == set(COMMANDS)
    for command in commands():
        program = command.words[0]
        if program == "kopt":
            assert command.kopt in COMMANDS, command.text
        elif program.startswith("scripts/"):
            assert os.access(ROOT / program, os.X_OK), command.text
        elif program not in ("export", "python", "."):
            assert command.needs, command.text


def test_the_first_hour_is_told_in_ten_lines_each() -> None:
    parts = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", README, re.M | re.S))
    for name in (
        *("My own kernel", "KernelBench", "My own model", "A sweep on a cluster", "An ablation"),
        "A corpus",
    ):
        lines = [line for block in BASH.findall(parts[name]) for line in block.splitlines()]
        assert 3 <= len(lines) <= 10, name


def test_its_pictures_are_there_and_small() -> None:
    names = re.findall(r'(?:src|srcset)="([^"]+)"', README)
    assert names
    assert all((ROOT / name).stat().st_size < 500_000 for name in names)


@pytest.mark.parametrize("command", of_kind("run"), ids=lambda command: command.text[:90])
def test_a_run_can_be_planned(
    command: Command, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = command.words[1:]
    if command.needs or "NAME" in command.text:
        overrides = [word for word in words[1:] if "=" in word]
        if "-m" not in words:
            compose_config([word for word in overrides if "$(" not in word])
        return
    assert main([*words, *(() if "--plan" in words else ("--plan",))]) == 0, capfd.readouterr().err


@pytest.mark.parametrize("command", of_kind(*READING), ids=lambda command: command.text[:90])
def test_a_command_that_reads_is_run(
    command: Command, here: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = []
    for word in command.words[1:]:
        if word.startswith("runs/") and "*" in word:
            words += sorted(map(str, here.glob(word)))
        else:
            words.append(IN_SAMPLES.get(word, word))
    if command.kopt == "replay":
        words[1] = DRIVEN
    if command.kopt == "prompt":
        words += ["--search", "set/p0/mcts-openai/0"]  # the README's run has a single search
    if "--out" in words:
        words[words.index("--out") + 1] = str(tmp_path / "out")
    assert main(words) == 0, capfd.readouterr().err


@pytest.mark.soak
def test_the_first_hour_of_a_kernel_of_one_s_own(place: Path) -> None:
    """As a new user has it: the section's commands, one after the other, in a shell."""
    (section,) = re.findall(r"^## My own kernel\n(.*?)(?=^## )", README, re.M | re.S)
    (block,) = BASH.findall(section)
    folder = place / "first_hour"
    folder.mkdir()
    for name in ("my_op.py", "my_kernel.py"):
        (folder / name).write_bytes((place / name).read_bytes())
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-ec", block], cwd=folder, env=environment, check=True, timeout=1800)
    assert (folder / "runs" / "mine" / "report" / "report.html").stat().st_size > 1_000_000
