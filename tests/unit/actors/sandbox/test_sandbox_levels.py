"""Names of levels, control groups on a made-up tree, and the filter's program step by step."""

from __future__ import annotations

import errno
import socket

import pytest

from kopt.actors.child.sandbox import kernel
from kopt.actors.child.sandbox.cgroups import (
    enter_group,
    groups_folder,
    remove_group,
    remove_stale_groups,
)
from kopt.actors.child.sandbox.levels import LEVELS, joined, wanted_levels
from kopt.actors.child.sandbox.seccomp import program
from kopt.errors import ConfigError


def test_nothing_stated_wants_every_level() -> None:
    assert wanted_levels(None) == wanted_levels("") == LEVELS


def test_stated_levels_are_those_and_process_in_the_order_of_levels() -> None:
    assert wanted_levels("seccomp+namespace") == ("process", "namespace", "seccomp")


def test_levels_that_stand_on_namespaces_go_with_them() -> None:
    assert wanted_levels("pid+mount+landlock") == ("process", "landlock")


def test_an_unknown_level_is_one_clear_line() -> None:
    with pytest.raises(ConfigError, match=r"KOPT_SANDBOX: expected some of process\+.*'docker'"):
        wanted_levels("process+docker")


def test_a_verdict_names_levels_in_order() -> None:
    assert joined({"seccomp", "process", "landlock"}) == "process+landlock+seccomp"


@pytest.fixture
def tree(tmp_path):
    """Version 2 with both controllers on in a slice, and a service in it."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    service = tmp_path / "my.slice" / "my.service"
    service.mkdir(parents=True)
    for folder, on in ((service, ""), (service.parent, "memory pids\n")):
        (folder / "cgroup.subtree_control").write_text(on)
        (folder / "cgroup.procs").write_text("")
    return tmp_path


def test_groups_are_made_beside_ours_where_the_parent_has_the_controllers(tree) -> None:
    found = groups_folder(root=tree, own="/my.slice/my.service")
    assert found == tree / "my.slice"


def test_groups_are_made_below_ours_where_it_passes_the_controllers_on(tree) -> None:
    (tree / "my.slice" / "my.service" / "cgroup.subtree_control").write_text("memory pids\n")
    found = groups_folder(root=tree, own="/my.slice/my.service")
    assert found == tree / "my.slice" / "my.service"


def test_a_group_without_the_pids_controller_is_of_no_use(tree) -> None:
    (tree / "my.slice" / "cgroup.subtree_control").write_text("memory\n")
    with pytest.raises(OSError, match="no group with memory and pids on"):
        groups_folder(root=tree, own="/my.slice/my.service")


def test_version_1_has_no_groups_for_us(tmp_path) -> None:
    with pytest.raises(OSError, match="no control groups of version 2"):
        groups_folder(root=tmp_path, own="/")


def test_a_group_gets_its_limits_and_the_caller(tree) -> None:
    folder = tree / "my.slice"
    enter_group(folder, name="7-8", memory_bytes=1 << 30, max_processes=99)
    group = folder / "kopt-7-8"
    assert (group / "pids.max").read_text() == "99"
    assert (group / "memory.max").read_text() == str(1 << 30)
    assert (group / "memory.swap.max").read_text() == "0"
    assert int((group / "cgroup.procs").read_text()) > 0


def test_only_empty_groups_of_dead_zygotes_are_stale(tree) -> None:
    folder = tree / "my.slice"
    for name in ("kopt-99999999-5", "kopt-1-5", "other"):
        (folder / name).mkdir()
    remove_stale_groups(folder)
    left = {path.name for path in folder.glob("*") if path.is_dir()}
    assert left == {"kopt-1-5", "other", "my.service"}
    remove_group(folder, name="1-5")
    remove_group(folder, name="1-5")  # again is no error
    assert not (folder / "kopt-1-5").exists()


LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
TABLES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED = 0


def outcome(name: str, number: int, *, first: int = 0, arch: int | None = None) -> int:
    """What the filter of a processor gives a call: 0, or the error number it is refused with."""
    table = kernel.machine()
    assert table is not None
    seen = {0: number, 4: TABLES[name] if arch is None else arch, 16: first}
    at, held = 0, 0
    instructions = program(table)
    while True:
        each = instructions[at]
        if each.code == LOAD:
            held = seen[each.operand]
        elif each.code == RETURN:
            return ALLOWED if each.operand == 0x7FFF0000 else each.operand & 0xFFFF
        else:
            holds = {
                EQUAL: held == each.operand,
                AT_LEAST: held >= each.operand,
                ANY_BIT: bool(held & each.operand),
            }[each.code]
            at += each.if_true if holds else each.if_false
        at += 1


# Numbers of read, socket, clone, ptrace and io_uring_setup.
CALLS = {"x86_64": (0, 41, 56, 101, 425), "aarch64": (63, 198, 220, 117, 425)}


@pytest.mark.parametrize("name", CALLS)
def test_the_filter_refuses_what_it_should_on_each_processor(name, monkeypatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: name)
    read, new_socket, clone, ptrace, io_uring = CALLS[name]
    assert outcome(name, read) == ALLOWED
    assert outcome(name, new_socket, first=socket.AF_UNIX) == ALLOWED
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, 40, 38):  # VSOCK, ALG
        assert outcome(name, new_socket, first=family) == errno.EAFNOSUPPORT
    assert outcome(name, clone, first=0x003D0F00) == ALLOWED  # a thread
    assert outcome(name, clone, first=0x10000011) == errno.EPERM  # a user namespace
    assert outcome(name, 435) == errno.ENOSYS  # clone3
    assert outcome(name, ptrace) == outcome(name, io_uring) == errno.EPERM
    assert outcome(name, 0x40000000 + read) == errno.ENOSYS  # x32
    assert outcome(name, read, arch=0x40000003) == errno.EPERM  # 32-bit calls


def test_a_processor_without_a_table_has_no_filter(monkeypatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert kernel.machine() is None
