"""Rewards as trainers call them: TRL's reward functions and a `verifiers` environment.

The columns of `kopt export --format rl` (configuration `prompts`) are what both read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from kopt.actors.serve.client import RewardClient
from kopt.errors import ConfigError

RewardFunction = Callable[..., list[float | None]]


def trl_reward(client: RewardClient, *, failed: float | None = None) -> RewardFunction:
    """Return a reward function for TRL's GRPOTrainer and its like.

    It is called with `completions` (texts or messages) and the data set's columns, of which it
    reads `problem`, `problem_source` and `problem_dtype`.

    Args:
        client: of the service.
        failed: reward of a completion that could not be judged through no fault of its own; None
            leaves it out of the loss, as TRL does with None.
    """

    def kopt_reward(
        completions: Sequence[Any],
        problem: Sequence[str] | None = None,
        problem_source: Sequence[str | None] | None = None,
        problem_dtype: Sequence[str | None] | None = None,
        **columns: Any,  # noqa: ANN401 - the data set's own
    ) -> list[float | None]:
        del columns
        if problem is None and problem_source is None:
            raise ConfigError("expected a column `problem` or `problem_source`, found neither")
        empty = [None] * len(completions)
        items = [
            {
                "completion": completion,
                "problem": name or "",
                "problem_source": source,
                "problem_dtype": dtype,
            }
            for completion, name, source, dtype in zip(
                completions,
                problem or empty,
                problem_source or empty,
                problem_dtype or empty,
                strict=True,
            )
        ]
        answers = client.judge(items)
        return [failed if each["reward"] is None else each["reward"] for each in answers]

    return kopt_reward


def verifiers_environment(dataset: Any, client: RewardClient) -> Any:  # noqa: ANN401 - its own types
    """Return a single-turn environment of `verifiers` before 0.3 over a data set of prompts.

    Later versions: `kopt.actors.serve.verifiers_taskset`.

    Args:
        dataset: with the columns of the configuration `prompts`.
        client: of the service.

    Raises:
        ConfigError: verifiers is not installed, or a later one.
    """
    try:
        import verifiers  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise ConfigError("verifiers is not installed: `pip install verifiers`") from error
    if not hasattr(verifiers, "SingleTurnEnv"):
        raise ConfigError(
            f"expected verifiers before 0.3, found {verifiers.__version__}: its taskset is "
            "kopt.actors.serve.verifiers_taskset"
        )

    async def kopt_reward(
        completion: Any,  # noqa: ANN401 - texts, or messages of several kinds
        info: dict[str, Any],
        **more: Any,  # noqa: ANN401 - whatever else verifiers passes
    ) -> float:
        del more
        # In a thread: rollouts share one event loop, and a slow candidate is its own matter.
        item = {"completion": _messages(completion), **info}
        (answer,) = await asyncio.to_thread(client.judge, [item])
        return float(answer["reward"] or 0.0)

    def with_info(row: dict[str, Any]) -> dict[str, Any]:
        names = ("problem", "problem_source", "problem_dtype")
        return {"info": {name: row.get(name) for name in names}, "answer": ""}

    rubric = verifiers.Rubric(funcs=[kopt_reward])
    return verifiers.SingleTurnEnv(dataset=dataset.map(with_info), rubric=rubric)


def _messages(completion: Any) -> Any:  # noqa: ANN401 - texts, or messages of several kinds
    """Return a completion as JSON has it: messages may be objects."""
    if isinstance(completion, str):
        return completion
    return [
        each if isinstance(each, dict) else {"role": each.role, "content": each.content}
        for each in completion
    ]
