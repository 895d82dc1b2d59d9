"""Doctor on models: the endpoint that the environment names, and CUTLASS."""

from __future__ import annotations

import asyncio

import pytest

from kopt.cli.probe import Probe
from kopt.cli.probe_model import model_probes
from kopt.testing.openai_server.mixture import Mixture
from kopt.testing.openai_server.server import ScriptedServer

KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def _no_endpoint(monkeypatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def probed(monkeypatch, *, key: str, models: tuple[str, ...] = ("one",)) -> Probe:
    """The row of an endpoint that wants KEY, asked with another or the same."""

    async def scenario() -> list[Probe]:
        async with ScriptedServer(Mixture(), key=KEY, models=models) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            monkeypatch.setenv("OPENAI_API_KEY", key)
            return await asyncio.to_thread(model_probes)

    return named("endpoint", asyncio.run(scenario()))


def named(name: str, rows: list[Probe] | None = None) -> Probe:
    (row,) = [row for row in rows or model_probes() if row.name == name]
    return row


def test_where_no_endpoint_is_configured_the_row_says_how_to_name_one() -> None:
    row = named("endpoint")
    assert (row.ok, row.needed) == (False, False)
    assert "OPENAI_BASE_URL" in row.found
    assert "programmer.base_url" in row.fix


def test_an_endpoint_that_answers_is_shown_with_its_models(monkeypatch) -> None:
    row = probed(monkeypatch, key=KEY, models=("a", "b", "c", "d", "e"))
    assert row.ok
    assert row.found.endswith("/v1 has a, b, c and 2 more")


def test_a_wrong_key_is_said_and_never_shown(monkeypatch) -> None:
    row = probed(monkeypatch, key="sk-wrong-0123456789")
    assert (row.ok, row.needed) == (False, False)
    assert "answers 401" in row.found
    assert "OPENAI_API_KEY" in row.fix
    assert "sk-wrong" not in row.found + row.fix


def test_an_endpoint_that_is_not_there_is_one_line(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    row = named("endpoint")
    assert not row.ok
    assert "does not answer" in row.found
    assert "\n" not in row.found


def test_a_url_that_is_none_is_one_line(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "no url")
    row = named("endpoint")
    assert not row.ok
    assert "OPENAI_BASE_URL" in row.found + row.fix


def test_the_environment_of_vllm_is_looked_for(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KOPT_VLLM_PYTHON", raising=False)
    row = named("vLLM environment")
    assert not row.ok
    assert row.fix.startswith("scripts/vllm_env.sh")
    python = tmp_path / ".venv-vllm" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    row = named("vLLM environment")
    assert not row.ok
    assert row.found.startswith("expected vLLM in the environment of")
    python.write_text("#!/bin/sh\nexit 0\n")
    assert named("vLLM environment").found == str(python)


def test_cutlass_is_looked_for() -> None:
    row = named("CUTLASS headers")
    assert row.ok or "nvidia-cutlass" in row.fix
