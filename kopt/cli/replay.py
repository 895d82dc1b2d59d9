"""`kopt replay`: rebuild a run's trees from its journal and check them, step by step."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE, FAILED
from kopt.cli.output import write_json
from kopt.data.fold import fold
from kopt.data.journal_files import read_events
from kopt.data.rundir import RunDir
from kopt.driver.replay import Replayed, replay
from kopt.errors import StoreError


def main(arguments: Sequence[str]) -> int:
    """Replay a run; 1 where a tree differs from the journal.

    Raises:
        ConfigError: the folder is no run.
    """
    parser = command_parser(
        "replay", description="Rebuild a run's trees from its journal and compare every step."
    )
    parser.add_argument("run", metavar="RUN", help="a run folder, such as runs/first")
    options = parse(parser, arguments)
    if options is None:
        return DONE
    run = RunDir.open(options.run)
    try:
        state = fold(read_events(run.path))
        replayed = replay(state)
    except StoreError as error:
        if options.json:
            write_json(sys.stdout, {"run": run.name, "same": False, "why": str(error)})
        else:
            sys.stderr.write(f"kopt: {error}\n")
        return FAILED
    if options.json:
        searches = [_row(search) for search in replayed]
        write_json(
            sys.stdout,
            {"run": run.name, "same": True, "events": state.next_seq, "searches": searches},
        )
        return DONE
    for search in replayed:
        row = _row(search)
        sys.stdout.write(
            f"{row['search']}: {row['nodes']} nodes, best node {row['best']}, "
            f"{row['ended'] or 'interrupted'}\n"
        )
    sys.stdout.write(
        f"{len(replayed)} search(es), {state.next_seq} events: every step is as journalled\n"
    )
    return DONE


def _row(search: Replayed) -> dict[str, object]:
    return {
        "search": search.name,
        "nodes": sum(1 for _ in search.tree.nodes()) - 1,  # ROOT is no candidate
        "best": search.tree.best(),
        "ended": search.ended,
    }
