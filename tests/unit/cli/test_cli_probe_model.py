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
            return await asyncio.to_thread(model_probes, device="cpu")

    (row,) = asyncio.run(scenario())
    return row


def test_where_no_endpoint_is_configured_there_is_no_row() -> None:
    assert model_probes(device="cpu") == []


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
    (row,) = model_probes(device="cpu")
    assert not row.ok
    assert "does not answer" in row.found
    assert "\n" not in row.found


def test_a_url_that_is_none_is_one_line(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "no url")
    (row,) = model_probes(device="cpu")
    assert not row.ok
    assert "OPENAI_BASE_URL" in row.found + row.fix


def test_cutlass_is_looked_for_where_a_gpu_can_use_it() -> None:
    (row,) = model_probes(device="cuda")
    assert row.name == "CUTLASS headers"
    assert row.ok or "nvidia-cutlass" in row.fix
