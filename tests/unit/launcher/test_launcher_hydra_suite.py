"""Hydra's own tests of a launcher, on ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.test_utils.launcher_common_tests import (
    BatchedSweeperTestSuite,
    IntegrationTestSuite,
    LauncherTestSuite,
)
from hydra.version import VersionBase
from hydra_plugins.kopt_launcher import KoptLauncher
from packaging.version import Version

import kopt.cli.plugins

pytestmark = pytest.mark.usefixtures("hydra_of_its_own_version")
BATCHES = ["hydra/sweeper=basic", "hydra.sweeper.max_batch_size=2"]


@pytest.fixture
def hydra_of_its_own_version() -> Iterator[None]:
    """Its tests expect the behaviour of version_base 1.1, and kopt sets 1.3 for the process."""
    base = VersionBase.instance()
    ours = base.version_base
    base.setbase(Version("1.1"))
    yield
    base.version_base = ours


def test_hydra_finds_the_launcher() -> None:
    assert KoptLauncher in Plugins.instance().discover(Launcher)


@pytest.mark.parametrize(("launcher_name", "overrides"), [("kopt", [])])
class TestKoptLauncher(LauncherTestSuite):
    pass


@pytest.mark.parametrize(("launcher_name", "overrides"), [("kopt", BATCHES)])
class TestKoptLauncherInBatches(BatchedSweeperTestSuite):
    pass


@pytest.fixture
def known_to_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of the suite are no part of kopt, which makes its launcher known itself."""
    monkeypatch.setenv("PYTHONPATH", str(Path(kopt.cli.plugins.__file__).parent))


@pytest.mark.slow
@pytest.mark.usefixtures("known_to_programs")
@pytest.mark.parametrize(
    ("task_launcher_cfg", "extra_flags"), [({}, ["-m", "hydra/launcher=kopt"])]
)
class TestKoptLauncherInAProgram(IntegrationTestSuite):
    pass
