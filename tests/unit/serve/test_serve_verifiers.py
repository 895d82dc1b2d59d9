"""The taskset of `verifiers` on an export's prompts: its tasks, and a reply's reward."""

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kopt.actors.serve.client import RewardClient
from kopt.data.exports.rl import PROMPTS_SCHEMA
from kopt.errors import ConfigError

vf = pytest.importorskip("verifiers.v1", reason="verifiers is not installed")

PROMPT = [
    {"role": "system", "content": "You write kernels."},
    {"role": "user", "content": "make it fast"},
]


@pytest.fixture
def taskset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from verifiers.v1.utils.loaders import load_taskset

    from kopt.actors.serve import verifiers_taskset as module

    lines = f"from {module.__name__} import KoptTaskset\n__all__ = ['KoptTaskset']\n"
    (tmp_path / "kernels_of_a_user.py").write_text(lines)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "prompts").mkdir()
    row = dict.fromkeys(PROMPTS_SCHEMA.names) | {
        "prompt": PROMPT,
        "problem": "p1",
        "problem_name": "set/a",
        "problem_source": "class Model: ...\n",
    }
    table = pa.Table.from_pylist([row], schema=PROMPTS_SCHEMA)
    pq.write_table(table, tmp_path / "prompts" / "train-00000.parquet")
    config = module.KoptTasksetConfig(id="kernels_of_a_user", prompts=str(tmp_path))
    return load_taskset(config)


def trace(reply: str) -> Any:
    return vf.Trace.model_construct(root_reply=reply, rewards={}, metrics={}, nodes=[])


def test_a_prompt_is_a_task(taskset: Any) -> None:
    (task,) = taskset
    assert (task.data.system_prompt, task.data.prompt_text) == (
        PROMPT[0]["content"],
        "make it fast",
    )
    assert (task.data.problem, task.data.problem_dtype, task.data.idx) == ("p1", None, 0)


def test_a_reply_has_the_services_reward(taskset: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def judge(self: RewardClient, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        asked.extend(items)
        return [{"status": "done", "reward": 0.75}]

    monkeypatch.setattr(RewardClient, "judge", judge)
    (task,) = taskset
    found = trace("words and code")
    asyncio.run(task.score(found))
    assert found.rewards["kopt_reward"].value == 0.75
    assert asked[0]["completion"] == "words and code"
    assert (asked[0]["problem"], asked[0]["problem_source"]) == ("p1", "class Model: ...\n")


def test_without_a_verdict_there_is_no_reward(
    taskset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"status": "failed", "reward": None, "reason": "device lost"}
    monkeypatch.setattr(RewardClient, "judge", lambda self, items: [answer])
    (task,) = taskset
    found = trace("words")
    with pytest.raises(Exception, match="device lost"):
        asyncio.run(task.score(found))
    assert found.rewards["kopt_reward"] is None


def test_a_folder_without_prompts_is_told(taskset: Any, tmp_path: Path) -> None:
    taskset.config = taskset.config.model_copy(update={"split": "none"})
    with pytest.raises(ConfigError, match="expected files none-"):
        list(taskset)
