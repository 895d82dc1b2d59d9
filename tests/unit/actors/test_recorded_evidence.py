"""A recording's evidence: given again, failed again in the same words, never taken here."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kopt.actors.recorded_evidence import RecordedProfiler
from kopt.candidate import Candidate
from kopt.data.evidence_json import evidence_to_json
from kopt.data.journal import Journal
from kopt.data.recording import Recording
from kopt.data.rundir import RunDir
from kopt.errors import ProfileFailed
from kopt.events import EvidenceTaken
from kopt.evidence import Evidence
from kopt.identity import canonical_json
from kopt.testing.fake_profiler import uncoalesced
from kopt.testing.fakes import ManualClock, correct, evaluation_of, source_candidate
from kopt.testing.sample_journal import SAMPLE_PROBLEM, write_search

PROFILED, FAILED, NEVER = (
    source_candidate(f"# {word}\nclass ModelNew: ...\n") for word in ("profiled", "failed", "never")
)


@pytest.fixture
def profiler(tmp_path: Path) -> RecordedProfiler:
    with Journal(tmp_path, run="first", clock=ManualClock()) as journal:
        slots = [(PROFILED, correct(2.0)), (FAILED, correct(1.5)), (NEVER, correct(1.2))]
        name = write_search(journal, expansions=[slots])
        evidence = uncoalesced(SAMPLE_PROBLEM, PROFILED)
        ref = journal.put_text(canonical_json(evidence_to_json(evidence)))
        for index, (candidate, kept, reason) in enumerate(
            [(PROFILED, ref, ""), (FAILED, None, "ncu: no permission")]
        ):
            journal.append(
                name,
                EvidenceTaken(
                    candidate=candidate.candidate_id,
                    expansion=0,
                    index=index,
                    ref=kept,
                    level="ncu" if kept else None,
                    reason=reason,
                    cached=False,
                    profiled_s=1.0,
                ),
            )
    RunDir(tmp_path).write_manifest({})
    return RecordedProfiler(Recording.open(str(tmp_path), verdicts=True))


def profile(profiler: RecordedProfiler, candidate: Candidate) -> Evidence:
    evaluation = evaluation_of(correct(2.0), problem=SAMPLE_PROBLEM, candidate=candidate)
    return asyncio.run(profiler.profile(SAMPLE_PROBLEM, candidate, evaluation))


def test_recorded_evidence_comes_back_as_it_was(profiler: RecordedProfiler) -> None:
    assert profile(profiler, PROFILED) == uncoalesced(SAMPLE_PROBLEM, PROFILED)


def test_what_failed_then_fails_again_in_the_same_words(profiler: RecordedProfiler) -> None:
    with pytest.raises(ProfileFailed, match="ncu: no permission"):
        profile(profiler, FAILED)


def test_what_was_not_profiled_then_is_not_profiled_here(profiler: RecordedProfiler) -> None:
    with pytest.raises(ProfileFailed, match="has no evidence of this candidate"):
        profile(profiler, NEVER)
