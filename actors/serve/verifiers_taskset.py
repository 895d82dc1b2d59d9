"""A taskset of `verifiers` (0.3 and later: `verifiers.v1`) on the reward service.

`kopt export … --format rl` gives the prompts, `kopt serve` the rewards. verifiers finds tasksets by
names without dots, so a project of yours has a module `kernels.py` of two lines, and its id is
`kernels`:

    from kopt.actors.serve.verifiers_taskset import KoptTaskset
    __all__ = ["KoptTaskset"]

Its settings are `--env.taskset.prompts` and `--env.taskset.task.url`. Importing it needs verifiers.
Earlier versions of it: `kopt.actors.serve.rewards.verifiers_environment`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import verifiers.v1 as vf  # type: ignore[import-not-found,unused-ignore]

from kopt.actors.serve.client import RewardClient
from kopt.errors import ConfigError

__all__ = ["KoptTaskset"]


# verifiers is an extra of its own: where it is missing, its classes are untyped bases.
class KoptTaskConfig(vf.TaskConfig):  # type: ignore[misc,unused-ignore]
    """Where completions are judged."""

    url: str = "http://127.0.0.1:8717"
    """Of `kopt serve`."""
    timeout_s: float = 3_600.0
    """For one verdict, waiting for room included."""


class KoptTasksetConfig(vf.TasksetConfig):  # type: ignore[misc,unused-ignore]
    """Where the prompts are."""

    prompts: str = "rl"
    """Folder of an export of format `rl`."""
    split: str = "train"
    task: KoptTaskConfig = KoptTaskConfig()


class KoptData(vf.TaskData):  # type: ignore[misc,unused-ignore]
    """One prompt, and the problem that it is of."""

    problem: str
    """Its id."""
    problem_source: str
    """Its reference module."""
    problem_dtype: str | None = None


class KoptTask(vf.Task[KoptData, vf.State, KoptTaskConfig]):  # type: ignore[misc,unused-ignore]
    """A prompt whose answer holds a kernel."""

    @vf.reward  # type: ignore[untyped-decorator,unused-ignore]
    async def kopt_reward(self, trace: Any) -> float:  # noqa: ANN401 - verifiers' own
        """Return the service's reward of the last reply: ln(speed-up) of a right candidate.

        Raises:
            ConfigError: there is no verdict, through no fault of the reply's: it has no reward.
        """
        item = {
            "problem": self.data.problem,
            "problem_source": self.data.problem_source,
            "problem_dtype": self.data.problem_dtype,
            "completion": trace.last_reply,
        }
        client = RewardClient(self.config.url, timeout_s=self.config.timeout_s)
        # In a thread: rollouts share one event loop, and a slow candidate is its own matter.
        (answer,) = await asyncio.to_thread(client.judge, [item])
        if answer["reward"] is None:
            raise ConfigError(f"no verdict ({answer['status']}): {answer.get('reason', '')}")
        return float(answer["reward"])


class KoptTaskset(vf.Taskset[KoptTask, KoptTasksetConfig]):  # type: ignore[misc,unused-ignore]
    """The prompts of an export, in its order."""

    def load(self) -> Iterator[KoptTask]:
        """Give a task for each prompt.

        Raises:
            ConfigError: the folder holds no prompts of that split.
        """
        folder = Path(self.config.prompts).expanduser() / "prompts"
        files = sorted(folder.glob(f"{self.config.split}-*.parquet"))
        if not files:
            raise ConfigError(
                f"{folder}: expected files {self.config.split}-*.parquet, found none; make them "
                "with `kopt export RUN --format rl`"
            )
        for file in files:
            with pq.ParquetFile(file) as table:
                for batch in table.iter_batches(batch_size=256):
                    for row in batch.to_pylist():
                        yield KoptTask(_data(row), self.config.task)


def _data(row: dict[str, Any]) -> KoptData:
    words: dict[str, list[str]] = {"system": [], "user": []}
    for message in row["prompt"]:
        words.setdefault(message["role"], []).append(message["content"])
    return KoptData(
        name=row["problem_name"],
        system_prompt="\n\n".join(words["system"]) or None,
        prompt="\n\n".join(words["user"]),
        problem=row["problem"],
        problem_source=row["problem_source"],
        problem_dtype=row["problem_dtype"],
    )
