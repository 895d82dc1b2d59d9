"""CUTLASS in a mailbox's prompts: what it demands, without functions that nobody can call."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kopt.actors.programmers.config import MailboxConfig
from kopt.actors.programmers.postbox import MailboxProgrammer
from kopt.errors import ConfigError
from kopt.expansion import first_expansion
from kopt.ports import Target, WriteRequest
from kopt.problem import Problem
from kopt.testing.small_workplace import small_workplace
from kopt.testing.toy_cutlass import write_toy

HOPPER = Target(device="cuda", name="NVIDIA H200", arch="sm_90", languages=("cuda", "torch"))
REQUEST = WriteRequest(
    problem=Problem(name="set/one", source="class Model: ...\n"),
    target=HOPPER,
    search="set/one/arm/0",
    arm="arm",
    seed=0,
    expansion=first_expansion(seed=1),
    parent=None,
)


def mailbox(folder: Path, **config: object) -> MailboxProgrammer:
    settings = {"folder": str(folder / "box"), "poll_s": 0.01, "settle_s": 0.0, **config}
    return MailboxProgrammer(
        MailboxConfig.model_validate(settings),
        small_workplace(folder, warn=lambda line: None, device="cuda"),
    )


def prompt(folder: Path, **config: object) -> str:
    """What is laid out for a GPU; it is answered, so that nothing is left open."""

    async def scenario() -> str:
        programmer = mailbox(folder, **config)
        writing = asyncio.create_task(programmer.write(REQUEST))
        while not (letters := list((folder / "box" / "prompts").glob("*.md"))):
            await asyncio.sleep(0.001)
        text = letters[0].read_text()
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await programmer.close()
        return text

    return asyncio.run(scenario())


def test_prompts_for_a_gpu_say_what_cutlass_demands_and_promise_no_tools(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("KOPT_CACHE_DIR", str(tmp_path / "cache"))
    toy = write_toy(tmp_path / "toy")
    for name in ("told", "untold"):
        (tmp_path / name).mkdir()
    told = prompt(tmp_path / "told", cutlass=str(toy))
    assert "### CUTLASS and CuTe" in told
    assert "check_smem_layout" not in told
    assert "### CUTLASS and CuTe" not in prompt(tmp_path / "untold", cutlass=False)


def test_a_checkout_that_is_none_is_said_by_its_key_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    expected = r"conf programmer\.cutlass: .*nowhere has no .*; expected a checkout of CUTLASS"
    with pytest.raises(ConfigError, match=expected):
        mailbox(tmp_path, cutlass=str(tmp_path / "nowhere"))
