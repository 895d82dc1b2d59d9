"""`kopt serve`: verdicts and rewards for trainers, over HTTP, by the search's own evaluator."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE
from kopt.errors import ConfigError

if TYPE_CHECKING:
    from kopt.actors.serve.config import ServeConfig
    from kopt.config import RunConfig
    from kopt.problem import Problem

EPILOG = """\
POST /v1/judgements {"items": [{"problem": "builtin/softmax", "completion": "…"}], "wait_s": 30}
gives for each item, in order: key, status (done, pending, failed), reward, kind, speedup, eval.
429 with Retry-After: nothing was taken; ask again. GET /health says how busy it is.
Programs of whoever reaches the port are run here, in the sandbox of `kopt doctor`: keep it private.

examples:
  kopt serve 'problem=builtin/*' device=cpu
  kopt serve problem=kernelbench/level1/1 --port 9000 --max-waiting 4096 evaluate=tf32
From Python: kopt.actors.serve.client.RewardClient; for TRL: kopt.actors.serve.rewards.trl_reward"""


def main(arguments: Sequence[str]) -> int:
    """Serve until interrupted.

    Raises:
        ConfigError: the extra `serve` is missing, the port is taken, or an override is wrong.
    """
    parser = command_parser("serve", description="Serve verdicts and rewards.", epilog=EPILOG)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="Hydra overrides")
    parser.add_argument("--host", default="127.0.0.1", help="to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8717, help="0 takes a free one (8717)")
    parser.add_argument("--max-waiting", type=int, default=1_024, help="candidates (1024)")
    parser.add_argument(
        "--findings", action="store_true", help="profile right candidates and say what was found"
    )
    parser.add_argument("--max-running", type=int, default=16, help="at once (16)")
    options = parse(parser, arguments)
    if options is None:
        return DONE
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"{error.name} is not installed: `pip install 'kopt-search[serve]'`"
        ) from error
    from pydantic import ValidationError

    from kopt.actors.serve.config import ServeConfig
    from kopt.cli.compose import compose_config
    from kopt.data.problems import check_contracts, resolve

    try:
        serve = ServeConfig(
            host=options.host,
            port=options.port,
            max_waiting=options.max_waiting,
            max_running=options.max_running,
            findings=options.findings,
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"--{first['loc'][0]}: {first['msg']}") from None
    config = compose_config(options.overrides)
    problems = resolve(config.problem, config.problems)
    check_contracts(problems)
    serve_until_interrupted(config, serve=serve, problems=problems)
    return DONE


def serve_until_interrupted(
    config: RunConfig, *, serve: ServeConfig, problems: Sequence[Problem]
) -> None:
    """Start the lanes and the server; return when it was told to stop.

    Raises:
        ConfigError: the cluster or device asked for is not there, or the port is taken.
    """
    import uvicorn

    from kopt.actors.cache.facts import judging_facts
    from kopt.actors.cache.kinds import open_store
    from kopt.actors.cached_evaluator import CachedEvaluator
    from kopt.actors.cluster import open_cluster
    from kopt.actors.evidence.pool import RayProfiler
    from kopt.actors.pool import RayEvaluator
    from kopt.actors.quiet import Quiet
    from kopt.actors.serve.app import make_app
    from kopt.actors.serve.finder import Finder
    from kopt.actors.serve.service import RewardService
    from kopt.environment import cache_dir

    secret = config.evaluate.secret
    evaluate = config.evaluate.model_copy(
        update={"secret": secrets.randbits(63) if secret is None else secret}
    )
    with open_cluster(config.cluster, device=config.device) as cluster:

        async def run() -> None:
            quiet = Quiet(cluster.device)
            lanes = RayEvaluator(
                cluster,
                config=config.cluster,
                evaluate=evaluate,
                cache_dir=cache_dir(),
                quiet=quiet,
            )
            judge = CachedEvaluator(
                lanes,
                config=evaluate,
                store=open_store(cache_dir(), "verdict"),
                facts=judging_facts,
            )
            try:
                profiler = None
                if serve.findings:
                    profiler = RayProfiler(
                        cluster,
                        config=config.cluster,
                        evaluate=evaluate,
                        cache_dir=cache_dir(),
                        quiet=quiet,
                        with_rules=False,
                    )
                service = RewardService(
                    judge,
                    target=await judge.target(),
                    rule=config.reward.rule(),
                    config=serve,
                    problems=problems,
                    findings=None if profiler is None else Finder(profiler),
                )
                settings = uvicorn.Config(
                    make_app(service, config=serve),
                    host=serve.host,
                    port=serve.port,
                    log_level="warning",
                )
                server = uvicorn.Server(settings)
                sys.stderr.write(f"serving {len(problems)} problem(s); Ctrl-C ends it\n")
                try:
                    await server.serve()
                finally:
                    await service.close()
                    if profiler is not None:
                        await profiler.close()
                if not server.started:
                    raise ConfigError(f"--port {serve.port}: it cannot be listened on")
            finally:
                lanes.close()

        asyncio.run(run())
