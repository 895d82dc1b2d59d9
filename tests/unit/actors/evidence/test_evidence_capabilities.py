"""What a machine has of profilers: the levels that follow, and when it is looked at anew."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kopt.actors.evidence import capabilities
from kopt.actors.evidence.capabilities import (
    Ability,
    Capabilities,
    capabilities_file,
    fingerprint,
    load_capabilities,
    save_capabilities,
)

ON, OFF = Ability(ok=True, found="here"), Ability(ok=False, found="gone", fix="install it")


def found(**parts) -> Capabilities:
    given = {"counters": ON, "timeline": ON, "disassembly": ON, "energy": OFF, **parts}
    return Capabilities(
        device="cpu",
        fingerprint=fingerprint("cpu"),
        counter_names=("a.sum", "b.sum"),
        roof={"tb_per_s": 0.01},
        **given,
    )


@pytest.mark.parametrize(
    ("counters", "timeline", "level"),
    [(ON, ON, "ncu"), (ON, OFF, "ncu"), (OFF, ON, "timeline"), (OFF, OFF, "static")],
)
def test_levels_degrade(counters, timeline, level) -> None:
    assert found(counters=counters, timeline=timeline).level == level


def test_what_was_found_is_found_again(tmp_path) -> None:
    save_capabilities(found(), tmp_path)
    assert load_capabilities(tmp_path, device="cpu") == found()
    assert load_capabilities(tmp_path, device="cuda") is None


def test_another_driver_or_tool_is_looked_at_anew(tmp_path, monkeypatch) -> None:
    save_capabilities(found(), tmp_path)
    monkeypatch.setattr(capabilities, "ncu_version", lambda: "Version 2031.1")
    assert load_capabilities(tmp_path, device="cpu") is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 99}'])
def test_a_damaged_file_is_no_finding(tmp_path, text) -> None:
    path = capabilities_file(tmp_path, device="cpu")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert load_capabilities(tmp_path, device="cpu") is None


def test_fields_of_another_version_are_no_finding(tmp_path) -> None:
    save_capabilities(found(), tmp_path)
    path = capabilities_file(tmp_path, device="cpu")
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "telepathy": True}))
    assert load_capabilities(tmp_path, device="cpu") is None


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path) -> None:
    (tmp_path / "evidence").write_text("a file where a folder should be")
    save_capabilities(replace(found(), energy=ON), tmp_path)
    assert load_capabilities(tmp_path, device="cpu") is None
