"""The snapshot of a watched run as one JSON object (`kopt watch RUN --json`)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kopt.cli.watch_state import Watched
from kopt.cli.watch_tree import Node, WatchedTree
from kopt.cli.watch_view import Moment


def snapshot(
    watched: Watched, moment: Moment, *, tree: WatchedTree | None = None
) -> dict[str, Any]:
    """Return what a frame shows, whole, as plain JSON values; what is not known is null."""
    standing = watched.standing
    recent = watched.recent_failures(now_ns=moment.now_ns)
    return {
        "run": moment.name,
        "status": moment.status,
        "owner": moment.owner,
        "device": moment.device or None,
        "num_devices": moment.num_devices,
        "active_s": watched.active_s(now_ns=moment.now_ns),
        "searches": standing.num_searches,
        "searches_ended": standing.ended,
        "candidates": {
            "told": standing.told,
            "left_at_most": standing.left if standing.budget else None,
            "correct": watched.kinds["correct"],
            "being_written": standing.writing,
            "being_judged": standing.judging,
            "run": watched.live,
            "cached": watched.cached,
            "by_kind": dict(watched.kinds),
            "run_per_gpu_hour": watched.live_per_hour(
                num_devices=moment.num_devices, now_ns=moment.now_ns
            ),
            "run_per_gpu_hour_recent": watched.recent_per_hour(
                num_devices=moment.num_devices, now_ns=moment.now_ns
            ),
        },
        "cost": asdict(watched.spending),
        "lanes": [
            {**asdict(lane), "occupancy": lane.occupancy}
            for lane in (moment.lanes.lanes if moment.lanes is not None else ())
        ],
        "mean_wait_s": {lane: sum(waits) / len(waits) for lane, waits in watched.waits.items()},
        "stages_s": dict(watched.stages_s),
        "profiled": watched.profiles,
        "best": {
            problem: {
                **asdict(best),
                "trend": [asdict(step) for step in watched.trends.get(problem, [])],
            }
            for problem, best in standing.best.items()
        },
        "failures": {
            kind: {
                "count": failure.count,
                "recent": recent[kind],
                "newest": failure.newest,
                "search": failure.search,
            }
            for kind, failure in watched.failures.items()
        },
        "tree": None if tree is None else _tree_json(tree),
    }


def _tree_json(tree: WatchedTree) -> dict[str, Any]:
    best = tree.best()
    return {
        "search": tree.search,
        "pending": tree.pending,
        "best": None if best is None else best.node,
        "nodes": [_node_json(node) for node in tree.nodes.values()],
    }


def _node_json(node: Node) -> dict[str, Any]:
    return {
        "node": node.node,
        "parent": node.parent,
        "candidate": node.made.candidate,
        "strategy": node.made.strategy,
        "kind": node.evaluation["kind"],
        "speedup": node.evaluation["speedup"],
        "reason": node.evaluation["reason"],
        "reward": node.reward,
    }
