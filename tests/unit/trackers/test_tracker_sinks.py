"""TensorBoard and Weights & Biases behind the port; neither package has to be there."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kopt.actors.trackers.table import open_tracker
from kopt.cli.compose import compose_config
from kopt.cli.resume import resumed_config
from kopt.cli.tracked import tracked
from kopt.config import to_plain
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError
from kopt.events import Told
from kopt.tracker import TrackedRun, Tracker

TOLD = Told(expansion=0, index=0, node=1, reward=0.0)


class FakeWandb:
    """The calls of the package that the sink makes."""

    def __init__(self) -> None:
        self.begun: dict[str, Any] = {}
        self.points: list[dict[str, float]] = []
        self.finished = 0
        self.Settings = SimpleNamespace

    def init(self, **options: Any) -> FakeWandb:
        self.begun = options
        return self

    def login(self, *, prompt: bool) -> bool:
        assert not prompt
        return False

    def define_metric(self, name: str, **options: Any) -> None:
        pass

    def log(self, values: dict[str, float]) -> None:
        self.points.append(values)

    def finish(self) -> None:
        self.finished += 1


def opened(folder: Path, *overrides: str) -> Tracker:
    config = compose_config(overrides)
    run = TrackedRun(name="first", folder=folder, config=to_plain(config))
    return open_tracker(config.tracker, run)


def use(tracker: Tracker) -> None:
    assert isinstance(tracker, Tracker)
    for step in (1, 2, 2):
        tracker.log({"candidates": float(step), "best_speedup/a": 1.5}, step=step)
    tracker.close()


def test_the_default_is_none_and_costs_nothing(tmp_path: Path) -> None:
    seen: list[str] = []

    def observe(search: str, event: object) -> None:
        seen.append(search)

    with ExitStack() as stack:
        config = compose_config([])
        same = tracked(observe, config, RunDir(tmp_path), stack=stack, warn=print)
    assert same is observe


@pytest.mark.parametrize("kind", ["tensorboard", "wandb"])
def test_a_package_that_is_not_installed_is_named_and_the_run_goes_on(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("torch.utils.tensorboard", "tensorboardX", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)
    seen: list[str] = []
    lines: list[str] = []
    config = compose_config([f"tracker={kind}"])
    with ExitStack() as stack:
        observe = tracked(
            lambda search, event: seen.append(search),
            config,
            RunDir(tmp_path),
            stack=stack,
            warn=lines.append,
        )
        observe("a", TOLD)
    assert seen == ["a"]
    (line,) = lines
    assert f"pip install 'kopt-search[{kind}]'" in line


def test_wandb_is_told_of_the_run_and_of_every_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    use(opened(tmp_path, "tracker=wandb", "tracker.project=p", "tracker.mode=offline"))
    assert (fake.begun["project"], fake.begun["name"], fake.begun["mode"]) == (
        "p",
        "first",
        "offline",
    )
    assert fake.begun["config"]["search"]["kind"] == "mcts"
    assert [point["candidates"] for point in fake.points] == [1.0, 2.0, 2.0]
    assert fake.finished == 1


def test_wandb_without_a_key_asks_nobody_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    with pytest.raises(ConfigError, match=r"set WANDB_API_KEY, .* or tracker\.mode=offline"):
        opened(tmp_path, "tracker=wandb")
    assert fake.begun == {}
    monkeypatch.setenv("WANDB_MODE", "offline")
    opened(tmp_path, "tracker=wandb")
    assert fake.begun["mode"] is None


@pytest.mark.slow
def test_wandb_itself_writes_a_run_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    use(opened(tmp_path, "tracker=wandb"))
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    assert file.stat().st_size > 0


def test_tensorboard_writes_event_files_in_the_run_folder(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    use(opened(tmp_path, "tracker=tensorboard"))
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [each.step for each in events.Scalars("candidates")] == [1, 2, 2]
    assert [each.value for each in events.Scalars("best_speedup/a")] == [1.5] * 3


def test_tensorboard_s_folder_may_be_elsewhere_with_a_folder_for_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    writer = SimpleNamespace(add_scalar=lambda *_: None, flush=lambda: None, close=lambda: None)

    def summary_writer(log_dir: str) -> object:
        made.append(log_dir)
        return writer

    monkeypatch.setitem(
        sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=summary_writer)
    )
    use(opened(tmp_path, "tracker=tensorboard", f"tracker.folder={tmp_path}/board"))
    assert made == [f"{tmp_path}/board/first"]


def test_an_unknown_tracker_is_answered_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="there are: none, tensorboard, wandb"):
        compose_config(["tracker=mlflow"])


def test_a_resumed_run_may_change_its_tracker(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.write_manifest({"config": to_plain(compose_config(["tracker=wandb"]))})
    assert resumed_config(run, ["tracker=none"]).tracker.kind == "none"
    assert resumed_config(run, ["tracker.mode=offline"]).tracker.kind == "wandb"
