"""The Programmer port: who there is, by name, and the rewriter as a process on the cluster."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import ray

from kopt.actors.cluster import Cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig, RewriterConfig
from kopt.actors.lanes import ActorLane
from kopt.actors.pool import Quiet
from kopt.actors.rewriter.worker import RewriterWorker
from kopt.ports import Answer, Programmer, WriteRequest
from kopt.registry import Registry

HUNG_S = 900.0
"""A rewriter that answers nothing for this long is killed and the request tried again."""

PROGRAMMERS: Registry[Programmer] = Registry("programmer", entry_point_group="kopt.programmers")
"""Factories are called with (config section, cluster=…, cluster_config=…, evaluate=…, quiet=…)."""


@PROGRAMMERS.register("rewriter")
class RayRewriter:
    """The programmer that needs no model, in a process of its own."""

    name = "rewriter"

    def __init__(
        self,
        config: RewriterConfig,
        *,
        cluster: Cluster,
        cluster_config: ClusterConfig,
        evaluate: EvaluateConfig,
        quiet: Quiet,
    ) -> None:
        """Start the processes on the programmer lane."""
        del config
        self._mode = evaluate.module_mode
        self._quiet = quiet

        def start(number: int) -> Any:  # noqa: ANN401 - Ray types no handle
            del number
            return ray.remote(RewriterWorker).options(**cluster.options("programmer")).remote()

        self._lane = ActorLane(
            "rewriter",
            start,
            size=cluster.programmer_workers,
            max_retries=cluster_config.max_retries,
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

    def close(self) -> None:
        """Let the idle processes go."""
        self._lane.close()
