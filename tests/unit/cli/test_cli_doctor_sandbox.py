"""Doctor on the sandbox: every level, whether it is on, and how to get it where it is not."""

from __future__ import annotations

import os

import pytest

from kopt.actors.child.sandbox.levels import LEVELS
from kopt.cli import doctor_sandbox
from kopt.cli.doctor_sandbox import FIXES, GIVES, sandbox_probes


def test_every_level_has_a_row_in_the_order_of_verdicts(monkeypatch) -> None:
    monkeypatch.delenv("KOPT_SANDBOX", raising=False)
    rows = sandbox_probes()
    assert [row.name for row in rows] == [f"sandbox: {level}" for level in LEVELS]
    assert rows[0].ok
    assert all(row.ok or (row.found.startswith("off (") and row.fix) for row in rows)


def test_every_level_says_what_it_gives_and_how_to_get_it() -> None:
    assert set(GIVES) == set(LEVELS)
    assert set(FIXES) == set(LEVELS) - {"process"}


def test_levels_that_are_switched_off_are_said(monkeypatch) -> None:
    monkeypatch.setenv("KOPT_SANDBOX", "process+seccomp")
    last = sandbox_probes()[-1]
    assert (last.ok, last.fix) == (False, "unset KOPT_SANDBOX")
    assert "process+seccomp" in last.found


def test_a_probe_that_cannot_run_is_one_row(monkeypatch) -> None:
    monkeypatch.setattr("sys.executable", "/no/such/python")
    (row,) = sandbox_probes()
    assert not row.ok


@pytest.mark.skipif(os.geteuid() == 0, reason="root has a user to give up")
def test_who_is_not_root_has_no_user_to_give_up() -> None:
    rows = {row.name: row for row in doctor_sandbox.sandbox_probes()}
    assert rows["sandbox: user"].ok
