"""Time ask and tell of a search on a large tree, with verdicts that cost nothing.

    python scripts/bench_search.py nodes=100000 policy=mcts candidates=2 in_flight=1 --json

Prints microseconds per call over the whole run and over its last tenth, where the tree is
largest. `--json` prints one object as the last line instead of the table. `candidates=auto` is 2 in
an expansion, or 4 in a round of a beam, whose width they are too.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time

from kopt.expansion import Expansion
from kopt.reward import RewardRule
from kopt.search import Search, create_search
from kopt.search.config import BeamConfig, BestOfNConfig, GreedyConfig, MctsConfig, SearchConfig
from kopt.testing.search_model import candidate_at, hashed_outcome, strategy_at

SETTINGS: dict[str, str] = {
    "nodes": "100000",
    "policy": "mcts",
    "candidates": "auto",
    "in_flight": "1",
    "seed": "0",
}
CANDIDATES = {"mcts": 2, "best_of_n": 2, "greedy": 2, "beam": 4}
"""Candidates of one expansion, or of a round of a beam, by policy."""
USAGE_EXIT = 2


def settings_of(arguments: list[str]) -> dict[str, str]:
    """Return the settings with the overrides applied.

    Raises:
        ValueError: an argument is not a known name=value.
    """
    settings = dict(SETTINGS)
    for argument in arguments:
        name, separator, value = argument.partition("=")
        if not separator or name not in settings:
            raise ValueError(f"expected one of {', '.join(SETTINGS)} as name=value, got {argument}")
        settings[name] = value
    return settings


def new_search(policy: str, *, nodes: int, candidates: str, seed: int) -> Search:
    """Return a search whose budget is that many nodes.

    Raises:
        ValueError: the policy is not one that this script knows, or a number is none.
    """
    if policy not in CANDIDATES:
        raise ValueError(f"policy must be one of {', '.join(CANDIDATES)}, got {policy}")
    num = CANDIDATES[policy] if candidates == "auto" else int(candidates)
    iterations = max(1, nodes // num)
    config: SearchConfig
    match policy:
        case "mcts":
            config = MctsConfig(iterations=iterations, candidates=num)
        case "greedy":
            config = GreedyConfig(iterations=iterations, candidates=num)
        case "beam":
            config = BeamConfig(
                iterations=iterations, candidates=num, width=num, idle_iterations=None
            )
        case _:
            config = BestOfNConfig(iterations=iterations, candidates=num)
    return create_search(config, rule=RewardRule(), seed=seed)


def timed_run(search: Search, *, in_flight: int) -> tuple[list[float], list[float]]:
    """Drive a search to its end; return the microseconds of every ask(1) and of every tell."""
    ask_us: list[float] = []
    tell_us: list[float] = []
    under_way: list[Expansion] = []
    while True:
        while len(under_way) < in_flight:
            start_s = time.perf_counter()
            expansions = search.ask()
            ask_us.append((time.perf_counter() - start_s) * 1e6)
            if not expansions:
                break
            under_way += expansions
        if not under_way:
            return ask_us, tell_us
        expansion = under_way.pop(0)
        for index in range(expansion.num_candidates):
            candidate = candidate_at(expansion, index=index)
            verdict = hashed_outcome(expansion, index)
            strategy = strategy_at(expansion, index=index)
            start_s = time.perf_counter()
            search.tell(
                expansion.ordinal,
                index,
                candidate=candidate,
                verdict=verdict,
                strategy=strategy,
            )
            tell_us.append((time.perf_counter() - start_s) * 1e6)


def summary(samples_us: list[float]) -> dict[str, float]:
    """Return mean, median, 99th percentile and worst, and the mean of the last tenth."""
    ordered = sorted(samples_us)
    return {
        "mean_us": round(statistics.fmean(ordered), 2),
        "median_us": round(statistics.median(ordered), 2),
        "p99_us": round(ordered[len(ordered) * 99 // 100], 2),
        "max_us": round(ordered[-1], 2),
        "last_tenth_mean_us": round(statistics.fmean(samples_us[-max(1, len(ordered) // 10) :]), 2),
    }


def main(arguments: list[str]) -> int:
    """Run the benchmark and return the exit code."""
    as_json = "--json" in arguments
    try:
        settings = settings_of([argument for argument in arguments if argument != "--json"])
        search = new_search(
            settings["policy"],
            nodes=int(settings["nodes"]),
            candidates=settings["candidates"],
            seed=int(settings["seed"]),
        )
        in_flight = int(settings["in_flight"])
        if in_flight < 1:
            raise ValueError(f"in_flight must be >= 1, got {in_flight}")
    except ValueError as error:
        print(f"bench_search: {error}", file=sys.stderr)
        return USAGE_EXIT
    ask_us, tell_us = timed_run(search, in_flight=in_flight)
    views = search.nodes()
    result = {
        **settings,
        "nodes": search.told(),
        "in_flight": in_flight,
        "seed": int(settings["seed"]),
        "depth": max(view.depth for view in views),
        "root_children": sum(view.parent == 0 for view in views),
        "ask": summary(ask_us),
        "tell": summary(tell_us),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    if as_json:
        print(json.dumps(result))
    else:
        print(
            f"{result['policy']}: {result['nodes']} nodes, depth {result['depth']}, "
            f"{result['root_children']} children of ROOT, {in_flight} in flight"
        )
        for call, samples_us in (("ask", ask_us), ("tell", tell_us)):
            figures = "  ".join(f"{name} {value:g}" for name, value in summary(samples_us).items())
            print(f"{call:5} {figures}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
