"""`kopt run`: one fleet, from overrides to a run folder; `-m` sweeps, `--plan` only tells."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from kopt.cli.arguments import command_parser, parse
from kopt.cli.compose import compose_config, swept_by_experiment
from kopt.cli.exit_codes import DONE
from kopt.cli.output import reserved_stdout, write_json
from kopt.cli.prepared import Prepared, prepare
from kopt.config import RunConfig
from kopt.errors import ConfigError
from kopt.problem import Problem

EPILOG = """\
examples:
  kopt run                                       five built-in problems
  kopt run problem=builtin/softmax seed=[0,1,2]
  kopt run problem='builtin/*' limits.wall_s=600 name=first
  kopt run problem=my/problem.py search=best_of_n search.iterations=10 search.candidates=4
  kopt run -m search=mcts,best_of_n problem=builtin/layer_norm seed='range(3)'
  kopt run -m experiment=kernelpro/search programmer.model=NAME --plan
  kopt run experiment=quickstart --json
  kopt run problem=my/model.py mode=compiled     take a compiled model apart, and put it together
conf/README.md lists the config groups and keys. Results: runs/NAME/ (results.parquet, best/)."""


def main(arguments: Sequence[str]) -> int:
    """Run one fleet, or several with -m.

    Raises:
        ConfigError: an override, a problem or a file cannot be used.
        StoreError: the run folder cannot be written.
    """
    parser = command_parser(
        "run",
        description="Search problems for faster programs that compute the same.",
        epilog=EPILOG,
    )
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="Hydra overrides")
    parser.add_argument("--plan", action="store_true", help="say what would run, and stop")
    parser.add_argument(
        "-m", "--multirun", action="store_true", help="a run for each combination of key=a,b"
    )
    options = parse(parser, arguments)
    if options is None:
        return DONE
    if options.multirun:
        from kopt.cli.sweep import sweep

        return sweep(options.overrides, plan=options.plan, as_json=options.json)
    config = compose_config(options.overrides)
    swept = swept_by_experiment(options.overrides)
    if swept:
        raise ConfigError(f"this experiment runs every combination of {', '.join(swept)}; add -m")
    return run_prepared(prepare(config), plan=options.plan, as_json=options.json)


def run_prepared(prepared: Prepared, *, plan: bool, as_json: bool) -> int:
    """Plan or run one job; return its exit code.

    Raises:
        StoreError: the run folder cannot be written.
        ConfigError: the cluster is not there.
    """
    config, problems = prepared.config, prepared.problems
    sys.stderr.writelines(f"kopt: {line}\n" for line in config.notes)
    if plan:
        _print_plan(config, problems, as_json=as_json)
        return DONE
    if not as_json:
        return _run(prepared, out=None)
    with reserved_stdout() as out:
        return _run(prepared, out=out)


def _print_plan(config: RunConfig, problems: Sequence[Problem], *, as_json: bool) -> None:
    from kopt.cli.plan import plan_json, plan_rows, plan_text

    rows = plan_rows(config, problems)
    if as_json:
        write_json(sys.stdout, plan_json(config, rows))
    else:
        sys.stdout.write(plan_text(config, rows))


def _run(prepared: Prepared, *, out: TextIO | None) -> int:
    from kopt.cli.session import run_session
    from kopt.clock import SystemClock
    from kopt.data.rundir import RunDir
    from kopt.data.seeds import keep_seeds

    config = prepared.config
    run = (
        RunDir.create(config.out, config.name, clock=SystemClock())
        if prepared.folder is None
        else RunDir(prepared.folder)
    )
    if config.search.seeds:
        keep_seeds(run, prepared.seeds)
    problems = prepared.problems
    if config.mode == "compiled":
        from kopt.cli.compiled import take_models_apart
        from kopt.cli.compiled_run import run_compiled

        return run_compiled(config, take_models_apart(config, problems, run=run), run=run, out=out)
    return run_session(config, problems, run=run, out=out)
