"""The crew of a fleet: seeds before any programmer, a recording with its own verdicts and order."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kopt.cli.ahead import look_ahead
from kopt.cli.crew import Crew, assemble
from kopt.config import RunConfig, load
from kopt.data.fold import RunState
from kopt.data.rundir import RunDir
from kopt.data.seeds import kept_seeds
from kopt.driver.seeds import SeededProgrammer
from kopt.errors import ConfigError
from kopt.ports import Target
from kopt.search.config import BestOfNConfig
from kopt.testing.fake_profiler import InstantProfiler
from kopt.testing.fakes import InstantEvaluator, ScriptedProgrammer
from kopt.testing.small_fleet import SMALL_TARGET, run_in_folder, small_problem, small_tasks
from kopt.testing.small_workplace import small_workplace

SEED = "from torch import nn\n\n\nclass ModelNew(nn.Module):\n    pass\n"


class Judge(InstantEvaluator):
    async def target(self) -> Target:
        return SMALL_TARGET


def config(programmer: dict[str, object], *, seeds: tuple[str, ...] = ()) -> RunConfig:
    search = {"kind": "best_of_n", "iterations": 3, "seeds": list(seeds)}
    return load({"problem": ["x"], "arm": "arm", "search": search, "programmer": programmer})


def crew_of(settings: RunConfig, folder: Path, said: list[str]) -> Crew:
    folder.mkdir(exist_ok=True)
    return asyncio.run(
        assemble(
            settings,
            small_tasks(settings.search),
            earlier=RunState(),
            run=RunDir(folder),
            workplace=small_workplace(folder, warn=said.append),
            judge=Judge(),
            make_profiler=InstantProfiler,
        )
    )


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    run_in_folder(
        tmp_path / "first",
        small_tasks(BestOfNConfig(iterations=3)),
        programmer=ScriptedProgrammer(),
        evaluator=InstantEvaluator(device="NVIDIA H200"),
    )
    device = {"kind": "cuda", "name": "NVIDIA H200", "arch": "sm_90", "languages": ["triton"]}
    RunDir(tmp_path / "first").write_manifest({"device": device})
    return tmp_path / "first"


def test_seeds_stand_before_the_programmer_and_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "seed.py"
    path.write_text(SEED)
    settings = config({"kind": "mailbox"}, seeds=(str(path),))
    crew = crew_of(settings, tmp_path / "run", [])
    assert isinstance(crew.programmer, SeededProgrammer)
    assert crew.programmer.name == "mailbox"
    kept = kept_seeds(RunDir(tmp_path / "run"))
    assert kept == look_ahead(settings, [small_problem()])
    path.unlink()
    assert isinstance(crew_of(settings, tmp_path / "run", []).programmer, SeededProgrammer)
    with pytest.raises(ConfigError, match="no such file"):
        crew_of(settings, tmp_path / "another", [])


def test_a_recording_with_verdicts_names_its_device(tmp_path: Path, recording: Path) -> None:
    said: list[str] = []
    programmer = {"kind": "recorded", "run": str(recording), "verdicts": True}
    crew = crew_of(config(programmer), tmp_path / "again", said)
    assert crew.target.label == "NVIDIA H200"
    assert crew.device == {
        "kind": "cuda",
        "name": "NVIDIA H200",
        "arch": "sm_90",
        "languages": ["triton"],
        "count": 1,
        "recorded_in": "first",
    }
    assert said == [
        f"verdicts are those of {recording} on NVIDIA H200; "
        "what it has none for is judged here, on cpu"
    ]


def test_a_recording_without_verdicts_is_judged_on_this_device(
    tmp_path: Path, recording: Path
) -> None:
    said: list[str] = []
    crew = crew_of(config({"kind": "recorded", "run": str(recording)}), tmp_path / "again", said)
    assert crew.target == SMALL_TARGET
    assert crew.device["kind"] == "cpu"
    assert said == []


def test_a_recording_takes_no_seeds_but_its_own(tmp_path: Path, recording: Path) -> None:
    programmer = {"kind": "recorded", "run": str(recording)}
    with pytest.raises(ConfigError, match="the recording's first ideas are its own"):
        crew_of(config(programmer, seeds=("seed.py",)), tmp_path / "again", [])


def test_a_recording_is_looked_for_ahead(tmp_path: Path) -> None:
    programmer = {"kind": "recorded", "run": str(tmp_path / "nowhere")}
    with pytest.raises(ConfigError, match="expected a run folder"):
        look_ahead(config(programmer), [small_problem()])
