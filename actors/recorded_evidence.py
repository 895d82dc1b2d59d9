"""The profiler of a recording: what was profiled then is not profiled again.

A run that was recorded on a GPU replays on a host without one, its evidence too. What the recording
has none for has none here: evidence of this host would be of another device than the verdicts.
"""

from __future__ import annotations

import json

from kopt.candidate import Candidate
from kopt.data.evidence_json import evidence_from_json
from kopt.data.recording import Recording
from kopt.errors import ConfigError, ProfileFailed, StoreError
from kopt.evaluation import Evaluation
from kopt.evidence import Evidence
from kopt.problem import Problem


class RecordedProfiler:
    """Gives recorded evidence."""

    def __init__(self, recording: Recording) -> None:
        """Take the recording."""
        self._recording = recording

    async def profile(
        self, problem: Problem, candidate: Candidate, evaluation: Evaluation
    ) -> Evidence:
        """Give the recorded evidence (the Profiler port).

        Raises:
            ProfileFailed: the recording has none of this candidate, or had none then.
        """
        del evaluation
        taken = self._recording.evidence(problem.problem_id, candidate.candidate_id)
        if taken is None:
            raise ProfileFailed(f"{self._recording.run.path} has no evidence of this candidate")
        if taken.ref is None:
            raise ProfileFailed(taken.reason)
        try:
            return evidence_from_json(json.loads(self._recording.run.artefacts.get(taken.ref)))
        except (ConfigError, StoreError, ValueError) as error:
            raise ProfileFailed(f"the recorded evidence cannot be read: {error}") from error

    async def close(self) -> None:
        """Do nothing: no file is held open."""
