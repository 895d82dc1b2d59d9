"""`kopt stats --json`: everything, as one object."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kopt.analysis.trial import Trial
from kopt.cli.stats_runs import Counted

SCHEMA_VERSION = 1


def stats_json(counted: Counted) -> dict[str, Any]:
    """Return the object: the strata with every figure, and a row for each search.

    Shares are 0 to 1, an interval is a pair; what could not be had is null.
    """
    asked = counted.asked
    return {
        "schema": SCHEMA_VERSION,
        "over_seeds": asked.over_seeds,
        "baseline": counted.over,
        "cap": asked.cap,
        "at": asked.at,
        "control": asked.control,
        "bootstrap_seed": asked.seed,
        "pool": asked.pool,
        "runs": [asdict(run) for run in counted.runs],
        "notes": [*counted.notes, *counted.study.notes],
        "strata": [asdict(stratum) for stratum in counted.study.strata],
        "searches": [_search(trial) for trial in counted.study.trials],
    }


def _search(trial: Trial) -> dict[str, Any]:
    return {
        "run": trial.run,
        "search": trial.search,
        "problem": trial.problem,
        "problem_name": trial.problem_name,
        "arm": trial.arm,
        "seed": trial.seed,
        "terms": asdict(trial.terms),
        "speedup": trial.speedup,
        "peak": trial.peak,
        "leads": [lead._asdict() for lead in trial.leads],
        "candidates": trial.candidates,
        "verdicts": dict(trial.verdicts),
        "outcome": trial.outcome,
        "root_cause": trial.root_cause,
        "degenerate": trial.degenerate,
        "ended": trial.ended,
        "energy": None if trial.energy is None else asdict(trial.energy),
    }
