"""What authors are told of how their candidates are judged."""

from __future__ import annotations

from kopt.actors.config import EvaluateConfig
from kopt.ports import Deadlines, Terms


def terms_of(config: EvaluateConfig) -> Terms:
    """Return the terms of a section: its policy, its track, its deadlines."""
    limits = config.timeouts
    return Terms(
        ladder=config.ladder,
        track=config.track,
        deadlines=Deadlines(
            build_s=limits.build_s, load_s=limits.load_s, call_s=limits.correctness_s
        ),
    )
