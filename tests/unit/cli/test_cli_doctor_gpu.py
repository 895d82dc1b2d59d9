"""Doctor on GPUs and Ray clusters: what nvidia-smi and the environment say, and the fixes."""

from __future__ import annotations

import ctypes
import socket
from ctypes.util import find_library
from pathlib import Path

import pytest

from kopt.actors.devices.nvrtc import load_nvrtc
from kopt.cli import probe_gpu
from kopt.cli.probe import Probe
from kopt.cli.probe_gpu import gpu_probes, least_driver
from kopt.cli.probe_ray import ray_probe

SMI = """#!/bin/sh
case $1 in
  *name*) printf 'NVIDIA %s, 143771 MiB\\nNVIDIA %s, 143771 MiB\\n' {name} {name} ;;
  *driver_version*) echo {driver} ;;
  *compute_cap*) echo {capability} ;;
esac
"""


class Installed:
    """A distribution that lies in a folder."""

    def __init__(self, folder: Path) -> None:
        self.locate_file = lambda name: folder / name


def find_library_file(name: str) -> Path:
    """Any library that can be loaded: where this process has one of that name."""
    ctypes.CDLL(find_library(name))
    lines = Path("/proc/self/maps").read_text().splitlines()
    return next(Path(line.split()[-1]) for line in lines if f"/lib{name}.so" in line)


@pytest.fixture
def probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The rows by name where an nvidia-smi on PATH tells of two GPUs of that kind."""

    packages = tmp_path / "packages"
    library = packages / "nvidia/cu13/lib/libnvrtc.so.13"
    library.parent.mkdir(parents=True)
    library.symlink_to(str(find_library_file("m")))

    def rows(*, driver: str, capability: str, torch: str) -> dict[str, Probe]:
        program = tmp_path / "nvidia-smi"
        program.write_text(SMI.format(name="H200", driver=driver, capability=capability))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.setattr(probe_gpu, "version", lambda _: torch)
        monkeypatch.setattr(probe_gpu, "distribution", lambda _: Installed(packages))
        return {row.name: row for row in gpu_probes()}

    return rows


def test_a_gpu_that_can_be_used_is_on_with_driver_and_capability(probed) -> None:
    rows = probed(driver="580.65.06", capability="9.0", torch="2.11.0+cu130")
    assert all(row.ok for row in rows.values())
    assert rows["GPU"].found == "2 x NVIDIA H200, 143771 MiB"
    assert (rows["driver"].found, rows["compute capability"].found) == ("580.65.06", "9.0")
    assert rows["NVRTC"].found == "of CUDA 13"


def test_a_gpu_for_which_nothing_can_be_compiled_has_a_fix(probed) -> None:
    # Of a release that nobody has: what a process has loaded is found by its name alone.
    row = probed(driver="580.65.06", capability="9.0", torch="2.11.0+cu990")["NVRTC"]
    assert not row.ok
    assert "nvidia-cuda-nvrtc" in row.fix


def test_a_library_that_is_nowhere_is_one_clear_line(tmp_path) -> None:
    with pytest.raises(RuntimeError, match=r"^libnvrtc\.so\.99 is not found.*LD_LIBRARY_PATH$"):
        load_nvrtc("99", packages=tmp_path)


def test_an_old_driver_an_old_gpu_and_a_build_for_cpus_each_have_a_fix(probed) -> None:
    rows = probed(driver="535.183.01", capability="7.5", torch="2.11.0+cu130")
    assert "torch 2.11.0+cu130 wants 580" in rows["driver"].found
    assert rows["driver"].fix.startswith("install driver 580 or later")
    assert "8.0 or later" in rows["compute capability"].fix
    row = probed(driver="535.183.01", capability="9.0", torch="2.13.0+cpu")["GPU"]
    assert not row.ok
    assert row.fix == "install a CUDA build of torch"


def test_without_a_gpu_each_row_is_off_with_a_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    rows = gpu_probes()
    assert [row.name for row in rows] == ["GPU", "driver", "compute capability"]
    assert all(row.fix and not row.ok and not row.needed for row in rows)


@pytest.mark.parametrize(
    ("torch", "driver"),
    [("2.11.0+cu130", 580), ("2.9.1+cu128", 525), ("2.13.0", 525), ("2.9.0+cpu", 525)],
)
def test_the_least_driver_follows_the_build(torch: str, driver: int) -> None:
    assert least_driver(torch) == driver


def test_a_ray_cluster_is_told_of_where_it_answers(tmp_path: Path) -> None:
    noted = tmp_path / "ray_current_cluster"
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert "joins it" in ray_probe({"RAY_ADDRESS": address}, noted=noted).found
        noted.write_text(address)
        assert "joins it" in ray_probe({}, noted=noted).found
    dead = ray_probe({"RAY_ADDRESS": address}, noted=noted)
    assert not dead.ok
    assert "unset RAY_ADDRESS" in dead.fix
    assert ray_probe({}, noted=noted).found.startswith("none runs")  # a killed cluster's file
    assert ray_probe({}, noted=tmp_path / "none").ok
