"""Verdicts shared by the fleet: one candidate of one problem is judged once."""

from __future__ import annotations

from kopt.driver.shared import SharedResults
from kopt.evaluation import Evaluation


class SharedVerdicts(SharedResults[Evaluation]):
    """What is known, or being found out, of every (problem id, candidate id)."""
