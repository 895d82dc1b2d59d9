"""Fleets on a cluster of this host that loses a machine every few seconds, for a while.

Usage: python scripts/soak.py [minutes=20] [kill_every_s=10] [nodes=4] [candidates=2000]
           [pace_s=0.5] [seed=0] [--json]

Each node pretends to have two GPUs; a node is killed and another joins every `kill_every_s`. Fleets
of `candidates` (searches of 20) follow one another on the same cluster until the minutes are over;
a worker takes `pace_s` for a verdict, which is a function of the candidate's id. The driver, trees,
journal, lanes and Ray are the real ones. Each journal is folded, replayed and counted.

The last line with --json is one object: minutes, fleets, candidates, kills, repeated (judged again
since their machine was lost), lost, duplicates, driver_rss_mb (most memory of the driver),
driver_growth_mb (of it, since the end of the first fleet), candidates_per_s. Exit 1 where anything
was lost or doubled.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from kopt.testing.losing_cluster import LosingCluster
from kopt.testing.losing_fleet import Account, lose_now_and_then, run_fleet_on

DEFAULTS = {
    "minutes": 20.0,
    "kill_every_s": 10.0,
    "nodes": 4.0,
    "candidates": 2000.0,
    "pace_s": 0.5,
    "seed": 0.0,
}
CANDIDATES_PER_SEARCH = 20


def main() -> None:
    """Run and print."""
    given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    unknown = set(given) - set(DEFAULTS)
    if unknown:
        sys.exit(f"unknown {', '.join(sorted(unknown))}; there are: {', '.join(DEFAULTS)}")
    try:
        options = {**DEFAULTS, **{key: float(value) for key, value in given.items()}}
    except ValueError as error:
        sys.exit(f"expected numbers, such as minutes=20: {error}")
    if min(options["nodes"], options["candidates"], options["kill_every_s"]) <= 0:
        sys.exit("nodes, candidates and kill_every_s are above 0")
    summary = soak(options)
    print(
        f"{summary['candidates']:.0f} candidates in {summary['fleets']:.0f} fleet(s), "
        f"{summary['minutes']:.1f} min: {summary['kills']:.0f} machines lost, "
        f"{summary['repeated']:.0f} candidates judged again, {summary['lost']:.0f} lost, "
        f"{summary['duplicates']:.0f} doubled; driver {summary['driver_rss_mb']:.0f} MB, "
        f"{summary['driver_growth_mb']:+.0f} MB since the first fleet",
        file=sys.stderr,
    )
    if "--json" in sys.argv:
        print(json.dumps(summary))
    sys.exit(1 if summary["lost"] or summary["duplicates"] else 0)


def soak(options: dict[str, float]) -> dict[str, float]:
    """Run fleets until the time is over, and return the sums."""
    began_s = time.monotonic()
    until_s = began_s + 60.0 * options["minutes"]
    searches = max(1, round(options["candidates"] / CANDIDATES_PER_SEARCH))
    accounts: list[Account] = []
    with LosingCluster(nodes=int(options["nodes"])) as machines:
        trouble = lose_now_and_then(
            machines.lose,
            machines.join_all,
            every_s=options["kill_every_s"],
            seed=int(options["seed"]),
        )
        while not accounts or time.monotonic() < until_s:
            with tempfile.TemporaryDirectory(prefix="soak-") as folder:
                account = run_fleet_on(
                    machines.address,
                    Path(folder),
                    searches=searches,
                    candidates=CANDIDATES_PER_SEARCH,
                    pace_s=options["pace_s"],
                    trouble=trouble,
                    seed=int(options["seed"]) + len(accounts),
                )
            accounts.append(account)
            print(f"fleet {len(accounts)}: {account}", file=sys.stderr, flush=True)
        kills = machines.killed
    minutes = (time.monotonic() - began_s) / 60.0
    return {
        "minutes": minutes,
        "fleets": len(accounts),
        "candidates": sum(account.candidates for account in accounts),
        "kills": kills,
        "repeated": sum(account.repeated for account in accounts),
        "lost": sum(account.lost for account in accounts),
        "duplicates": sum(account.duplicates for account in accounts),
        "driver_rss_mb": accounts[-1].driver_rss_mb,
        "driver_growth_mb": accounts[-1].driver_rss_mb - accounts[0].driver_rss_mb,
        "candidates_per_s": sum(account.candidates for account in accounts)
        / sum(account.wall_s for account in accounts),
    }


if __name__ == "__main__":
    main()
