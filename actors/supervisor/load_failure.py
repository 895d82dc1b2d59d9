"""What it means for a candidate that building or loading it failed: for those who do either."""

from __future__ import annotations

from kopt.actors.supervisor.child import ChildFailed
from kopt.verdict import CompileFailed, Crashed, TimedOut, Verdict


def load_verdict(failure: ChildFailed) -> Verdict:
    """Return what a failure while building or loading means."""
    stage = {"construct_candidate": "construct", "contract": "construct"}.get(
        failure.stage, failure.stage
    )
    if failure.how == "timed_out":
        return TimedOut(stage=stage, limit_s=failure.limit_s)
    if failure.how == "died":
        return Crashed(stage=stage, log=failure.log)
    return CompileFailed(stage=stage, log=failure.log)
