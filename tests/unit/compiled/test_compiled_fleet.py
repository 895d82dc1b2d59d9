"""Compiled models in a multirun: taken apart once, copied into each job, labelled by kind."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from kopt.actors.compiled.order import Order
from kopt.cli.compiled import Taken, models_folder, problems_of, take_models_apart
from kopt.compiled.families import ONE_KERNEL, SEVERAL_KERNELS
from kopt.compiled.groups import Group
from kopt.compiled.record import Apart, SubKernel
from kopt.config import RunConfig, load
from kopt.data.rundir import RunDir
from kopt.environment import cache_dir
from kopt.identity import canonical_json
from kopt.problem import Problem

MODEL = Problem(name="models/two", source="class Model: ...\n")


def config(**more: object) -> RunConfig:
    return load({"problem": "x", "mode": "compiled", "device": "cpu", **more})


def sub(name: str, *places: int) -> SubKernel:
    group = Group(
        places=places, kernels=tuple(f"k{n}" for n in places), reads=(), results=(), why="so"
    )
    return SubKernel(name=name, group=group, time_us=1.0, share=0.1, problem=f"models/two/{name}")


def taken_in(folder: Path) -> Taken:
    """What another job took apart, in its folder."""
    folder.mkdir(parents=True)
    (folder / "apart.json").write_text("{}")
    (folder / "worker.log").write_text("")
    order = Order(
        problem=MODEL, folder="", cache=str(cache_dir() / "inductor"), device="cpu", merge=True
    )
    apart = Apart(
        model=MODEL.name,
        subkernels=(sub("one", 1), sub("both", 2, 3)),
        problems={"models/two/one": "# one\n", "models/two/both": "# both\n"},
    )
    return {canonical_json(asdict(order)): (folder, apart)}


def test_a_model_that_another_job_took_apart_is_copied_and_not_compiled_again(
    tmp_path: Path,
) -> None:
    taken = taken_in(tmp_path / "first" / "two")
    run = RunDir(tmp_path / "second")
    problems = problems_of(take_models_apart(config(), [MODEL], run=run, taken=taken))
    assert [(each.name, each.family) for each in problems] == [
        ("models/two/one", ONE_KERNEL),
        ("models/two/both", SEVERAL_KERNELS),
    ]
    folder = models_folder(run) / MODEL.file_name
    assert (folder / "apart.json").read_text() == "{}"
    assert (folder / "problems" / "both.py").read_text() == "# both\n"


def test_arms_that_differ_in_the_gate_alone_compile_alike(tmp_path: Path) -> None:
    taken = taken_in(tmp_path / "first" / "two")
    without = config(compiled={"performance_gate": False})
    assert without.compiled.performance_gate == "off"
    assert take_models_apart(without, [MODEL], run=RunDir(tmp_path / "c3"), taken=taken)
    assert len(taken) == 1
