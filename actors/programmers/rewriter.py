"""The rewriter as a programmer: a process of its own on the cluster."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import ray

from kopt.actors.lanes import ActorLane
from kopt.actors.programmers.config import RewriterConfig
from kopt.actors.programmers.registry import PROGRAMMERS, Workplace
from kopt.actors.rewriter.worker import RewriterWorker
from kopt.ports import Answer, WriteRequest

HUNG_S = 900.0
"""A rewriter that answers nothing for this long is killed and the request tried again."""


@PROGRAMMERS.register("rewriter")
class RayRewriter:
    """The programmer that needs no model, in a process of its own."""

    name = "rewriter"

    def __init__(self, config: RewriterConfig, workplace: Workplace) -> None:
        """Start the processes on the programmer lane."""
        fold = config.fold
        cluster = workplace.cluster
        self._mode = workplace.evaluate.module_mode
        self._quiet = workplace.quiet

        def start(number: int) -> Any:  # noqa: ANN401 - Ray types no handle
            del number
            remote = ray.remote(RewriterWorker).options(**cluster.options("programmer"))
            return remote.remote(fold=fold)

        self._lane = ActorLane(
            "rewriter",
            start,
            size=cluster.programmer_workers,
            max_retries=workplace.cluster_config.max_retries,
            limit_s=HUNG_S,
        )

    async def write(self, request: WriteRequest) -> Answer:
        """Write candidates (the Programmer port)."""
        async with AsyncExitStack() as stack:
            await self._quiet.hold(stack)
            answer, _ = await self._lane.call(
                "write", request, self._mode, key=request.problem.problem_id
            )
            assert isinstance(answer, Answer)
            return answer

    async def close(self) -> None:
        """Let the idle processes go."""
        self._lane.close()
