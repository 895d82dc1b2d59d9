"""A script for load: answers after some delay, and errors among them at a given rate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from kopt.testing.openai_server.behaviour import Asked, Behaviour

TRANSIENT = (
    Behaviour(kind="status", status=500),
    Behaviour(kind="status", status=502),
    Behaviour(kind="status", status=503, headers={"Retry-After": "0.05"}),
    Behaviour(kind="status", status=429, headers={"Retry-After-Ms": "50"}),
    Behaviour(kind="status", status=408),
    Behaviour(kind="drop"),
    Behaviour(kind="drop_within"),
)
"""Errors that pass when asked again."""
FAULTY = (
    Behaviour(kind="html"),
    Behaviour(kind="wrong_json"),
    Behaviour(kind="truncated"),
    Behaviour(kind="no_choices"),
    Behaviour(kind="null_content"),
    Behaviour(kind="refusal"),
    Behaviour(kind="cut"),
)
"""Answers that hold no candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Draws from the request's own generator, so that equal runs meet equal errors."""

    errors: float = 0.0
    """Share of requests that meet a transient error, in [0, 1]; each retry is drawn anew."""
    first_errors: int = 0
    """Attempts of each request, its first ones, that meet a transient error whatever is drawn."""
    faulty: float = 0.0
    """Share of the others whose answer is faulty, in [0, 1]."""
    delay_s: float = 0.0
    """Mean time before an answer; errors take a tenth of theirs."""
    spread: float = 0.0
    """Standard deviation of the delay's logarithm; 0 makes all delays equal."""

    def __call__(self, asked: Asked) -> Behaviour:
        """Choose (the Script)."""
        rng = asked.rng
        # Mean of a log-normal: exp(mu + sigma^2 / 2).
        delay_s = self.delay_s * math.exp(rng.gauss(0.0, self.spread) - self.spread**2 / 2)
        draw = rng.random()
        if asked.attempt < self.first_errors or draw < self.errors:
            return _delayed(rng.choice(TRANSIENT), delay_s / 10)
        if rng.random() < self.faulty:
            return _delayed(rng.choice(FAULTY), delay_s)
        return Behaviour(delay_s=delay_s)


def _delayed(behaviour: Behaviour, delay_s: float) -> Behaviour:
    return replace(behaviour, delay_s=delay_s)
