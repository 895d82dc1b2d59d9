"""Rewards as trainers call them: TRL's reward functions and a `verifiers` environment.

The columns of `kopt export --format rl` (configuration `prompts`) are what both read.
"""

from __future__ import annotations

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
    """Return a single-turn `verifiers` environment over a data set of prompts.

    Args:
        dataset: with the columns of the configuration `prompts`.
        client: of the service.

    Raises:
        ConfigError: verifiers is not installed.
    """
    try:
        import verifiers  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise ConfigError("verifiers is not installed: `pip install verifiers`") from error

    def kopt_reward(completion: Any, info: dict[str, Any], **more: Any) -> float:  # noqa: ANN401
        del more
        (answer,) = client.judge([{"completion": completion, **info}])
        return float(answer["reward"] or 0.0)

    def with_info(row: dict[str, Any]) -> dict[str, Any]:
        names = ("problem", "problem_source", "problem_dtype")
        return {"info": {name: row.get(name) for name in names}, "answer": ""}

    rubric = verifiers.Rubric(funcs=[kopt_reward])
    return verifiers.SingleTurnEnv(dataset=dataset.map(with_info), rubric=rubric)
