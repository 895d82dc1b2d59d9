"""`kopt export`: what runs tried, as a corpus and in the forms that trainers read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE
from kopt.cli.output import write_json
from kopt.errors import ConfigError, StoreError
from kopt.foreign_language import known_language

if TYPE_CHECKING:
    from argparse import Namespace

    from kopt.data.exports.choice import Choice
    from kopt.data.exports.data_card import Card
    from kopt.data.rundir import RunDir

FORMATS = ("corpus", "sft", "dpo", "rl", "guidelines")
LADDERS = ("strict", "tf32", "loose", "kernelbench")
SHARES = {"validation_share": 0.0, "test_share": 0.0}
EPILOG = """\
corpus      everything, failures too: a row for each candidate and each completion without one;
            views.sql beside it asks DuckDB: models, strategies, tools, errors
sft         conversations that end in a right candidate (a `messages` column)
dpo         pairs of answers to one prompt: right over wrong, faster over slower
rl          episodes with a reward for each step, and prompts alone (TRL's and verl's columns)
guidelines  which techniques paid where; tracker.json is a cold start for memory.tracker

Keys, paths, host names and user names are taken out of every text. README.md of the export is its
data card: what is in it, what was left out and why, what of the runs is lost.

examples:
  kopt export runs/first --format sft --min-speedup 1.1 --out sft
  kopt export runs/* --format dpo --test-family norm --exclude 'kernelbench/level2/*' --out pairs
  kopt export runs/* --format corpus --out lake && cd lake && duckdb -init views.sql
  python -c "from datasets import load_dataset; print(load_dataset('sft'))\""""


def main(arguments: Sequence[str]) -> int:
    """Write an export; 0 where it is there.

    Raises:
        ConfigError: a folder is no run, `--out` holds files, or an argument is wrong.
        StoreError: the export cannot be written.
    """
    parser = command_parser(
        "export", description="Make a corpus of runs, for training on it.", epilog=EPILOG
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help="a run folder")
    parser.add_argument("--format", choices=FORMATS, required=True, help="what for; see below")
    parser.add_argument("--out", metavar="DIR", required=True, help="a new or empty folder")
    parser.add_argument("--ladder", action="append", default=[], choices=LADDERS)
    parser.add_argument(
        "--track", action="append", default=[], choices=("kernels", "anything"), help="any"
    )
    parser.add_argument("--language", metavar="NAME", action="append", default=[], help="any")
    parser.add_argument(
        "--min-speedup", metavar="X", type=float, help="least low end of a speed-up's interval"
    )
    parser.add_argument(
        "--degenerate", action="store_true", help="take problems on which a speed-up means little"
    )
    parser.add_argument(
        "--sent-only",
        action="store_true",
        help="leave out what no model or person was asked for in words (the rewriter's)",
    )
    parser.add_argument(
        "--near-duplicate",
        metavar="S",
        type=float,
        default=0.85,
        help="sft: similarity (0 to 1) from which on sources of a problem are one; 0 keeps all",
    )
    parser.add_argument(
        "--exclude",
        metavar="PROBLEM",
        action="append",
        default=[],
        help="a problem, set or glob that must not be learned from",
    )
    parser.add_argument("--validation-share", metavar="S", type=float, default=0.0)
    parser.add_argument("--test-share", metavar="S", type=float, default=0.0)
    parser.add_argument("--validation-family", metavar="F", action="append", default=[])
    parser.add_argument("--test-family", metavar="F", action="append", default=[])
    parser.add_argument("--turns", choices=("single", "lineage", "both"), default="both")
    parser.add_argument(
        "--margin", metavar="M", type=float, default=0.05, help="dpo: faster by more than this"
    )
    parser.add_argument("--max-pairs", metavar="N", type=int, default=4, help="dpo: of one prompt")
    parser.add_argument(
        "--redact", metavar="NAME", action="append", default=[], help="take this name out too"
    )
    parser.add_argument(
        "--processes",
        metavar="N",
        type=int,
        default=min(2, len(os.sched_getaffinity(0))),
        help="corpus, dpo: that write at once, 250 MiB each; the bytes stay the same (%(default)s)",
    )
    options = parse(parser, arguments)
    if options is None:
        return DONE
    _check(options)
    card = _export(options)
    if options.json:
        write_json(sys.stdout, {"out": options.out, **card.to_json()})
    else:
        sys.stdout.write(_summary(card, out=options.out))
    return DONE


def _check(options: Namespace) -> None:
    for name in ("validation_share", "test_share", "near_duplicate"):
        value = getattr(options, name)
        if not 0.0 <= value <= 1.0:
            raise ConfigError(f"--{name.replace('_', '-')}: expected 0 to 1, found {value:g}")
    if options.validation_share + options.test_share > 1.0:
        raise ConfigError("--validation-share and --test-share: expected at most 1 together")
    if options.min_speedup is not None and not options.min_speedup > 0.0:
        raise ConfigError(f"--min-speedup: expected above 0, found {options.min_speedup:g}")
    if options.margin < 0.0:
        raise ConfigError(f"--margin: expected 0 or more, found {options.margin:g}")
    if options.max_pairs < 1:
        raise ConfigError(f"--max-pairs: expected 1 or more, found {options.max_pairs}")
    if options.processes < 1:
        raise ConfigError(f"--processes: expected 1 or more, found {options.processes}")
    both = set(options.validation_family) & set(options.test_family)
    if both:
        raise ConfigError(f"--test-family {sorted(both)[0]}: it is held back for validation too")


def _export(options: Namespace) -> Card:
    from kopt.data.exports.export import export
    from kopt.data.rundir import RunDir

    runs: dict[Path, RunDir] = {}
    for path in options.runs:
        runs.setdefault(Path(path).resolve(), RunDir.open(path))
    _check_languages(options.language, runs.values())
    told = ("out", "runs", "json", "redact", "processes")
    settings: dict[str, Any] = {
        name: value for name, value in sorted(vars(options).items()) if name not in told
    }
    return export(
        list(runs.values()),
        Path(options.out),
        format=options.format,
        choice=_choice(options),
        settings=settings,
        words=options.redact,
        processes=options.processes,
    )


def _check_languages(names: Sequence[str], runs: Iterable[RunDir]) -> None:
    """Raise of a language that neither kopt nor a run knows: nothing would be exported of it."""
    of_runs: list[str] = []
    for run in runs if names else ():
        with suppress(StoreError):  # what is wrong with it is said with the export
            of_runs += (run.read_manifest().get("device") or {}).get("languages") or ()
    for name in names:
        known_language(name, others=of_runs)


def _choice(options: Namespace) -> Choice:
    from kopt.data.corpus.splits import SplitRule
    from kopt.data.exports.choice import Choice

    return Choice(
        ladders=tuple(options.ladder),
        tracks=tuple(options.track),
        languages=tuple(options.language),
        min_speedup=options.min_speedup,
        degenerate=options.degenerate,
        with_rebuilt=not options.sent_only,
        near_duplicate=options.near_duplicate or None,
        excluded=_excluded(options.exclude),
        splits=SplitRule(
            validation_share=options.validation_share,
            test_share=options.test_share,
            validation=tuple(options.validation_family),
            test=tuple(options.test_family),
        ),
        turns=options.turns,
        margin=options.margin,
        max_pairs=options.max_pairs,
    )


def _excluded(patterns: Sequence[str]) -> frozenset[str]:
    """Ids and source digests of the problems that must not be learned from."""
    if not patterns:
        return frozenset()
    from kopt.data.corpus.near_duplicates import source_digest
    from kopt.data.problems import resolve
    from kopt.data.problems.config import ProblemsConfig

    problems = resolve(list(patterns), ProblemsConfig())
    ids = {problem.problem_id for problem in problems}
    return frozenset(ids | {source_digest(problem.source) for problem in problems})


def _summary(card: Card, *, out: str) -> str:
    record = card.to_json()
    lines = [
        f"{name}: " + (", ".join(f"{split} {n}" for split, n in counts.items()) or "no rows")
        for name, counts in record["rows"].items()
    ]
    for title, key in (("left out", "left_out"), ("lost", "lost"), ("redacted", "redacted")):
        if record[key]:
            said = ", ".join(f"{why} {number}" for why, number in record[key].items())
            lines.append(f"{title}: {said}")
    lines += [f"note: {line}" for line in record["warnings"]]
    return "\n".join([*lines, f"{out}/README.md says more"]) + "\n"
