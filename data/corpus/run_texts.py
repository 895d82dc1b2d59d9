"""A run as a source of rows: its texts, redacted, and the facts that all its rows share."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from kopt.data.corpus.gathering import GatheredSearch, gathered
from kopt.data.corpus.kept_texts import KeptTexts
from kopt.data.corpus.losses import Losses
from kopt.data.corpus.redaction import redactor_of
from kopt.data.journal_files import JOURNAL_FOLDER
from kopt.data.lock import LOCK_FILE, lock_owner
from kopt.data.manifest import target_of
from kopt.data.rundir import RunDir
from kopt.errors import StoreError
from kopt.identity import canonical_json
from kopt.ports import Target
from kopt.problem import Problem

KEPT_CHATS = 512
"""Conversations kept in memory: the prompt of an expansion comes again with each of its answers."""
KEPT_PROBLEMS = 2_048
Chat = list[dict[str, str]]
"""Messages as `role` and `content`."""


class RunTexts:
    """Reads one run for a corpus. Never writes to it; a driver may be writing."""

    def __init__(self, run: RunDir, *, words: Iterable[str] = ()) -> None:
        """Take a run folder.

        Args:
            run: its folder.
            words: further names that must not remain in any text.
        """
        self.run = run
        self.name = run.name
        """Of the run; a folder's name is looked up once."""
        self.losses = Losses()
        self.is_running = lock_owner(run.path) is not None
        self.has_run_end = False
        self.manifest = self._manifest()
        self.redactor = redactor_of(self.manifest, lock=self._lock(), words=words)
        self._texts = KeptTexts(run.artefacts, redactor=self.redactor, losses=self.losses)
        self.chat = lru_cache(maxsize=KEPT_CHATS)(self._chat)
        self.problem = lru_cache(maxsize=KEPT_PROBLEMS)(self._problem)
        self.problem_source = lru_cache(maxsize=KEPT_PROBLEMS)(self._problem_source)
        self.versions = canonical_json(self.manifest.get("versions")) if self.manifest else None
        self.hardware = self._hardware()

    def searches(self) -> Iterator[GatheredSearch]:
        """Give its searches, in the order in which they ended.

        Raises:
            StoreError: the journal's folder cannot be listed.
        """
        journal = self.run.path / JOURNAL_FOLDER
        if not journal.is_dir():
            self.losses.lose_thing("run without a journal", self.run.name)
            return
        yield from gathered(journal, self.losses)

    def target(self) -> Target | None:
        """Return what its candidates were written for; None where its manifest does not say."""
        return target_of(self.manifest)

    def text(self, sha256: str) -> str | None:
        """Return an artefact's text, redacted; None where it is lost."""
        return self._texts.get(sha256)

    def read_ahead(self, sha256s: Iterable[str | None], *, own: Iterable[str | None] = ()) -> None:
        """Read what is about to be asked for, many texts at once.

        Args:
            sha256s: of artefacts; None is passed over.
            own: texts of events, which `redactor` is about to be given.
        """
        self._texts.read_ahead(sha256s)
        self.redactor.ahead(each for each in own if each)

    def tokens(self, sha256: str | None) -> dict[str, list[Any]]:
        """Return the token ids and log-probabilities of a trace; empty where there are none."""
        if sha256 is None:
            return {}
        try:
            trace = json.loads(self.run.artefacts.get(sha256))
            return trace if isinstance(trace, dict) else {}
        except (StoreError, ValueError) as error:
            self.losses.lose_thing("text that is lost", f"trace {sha256[:12]}", why=str(error))
            return {}

    def _chat(self, sha256: str) -> Chat | None:
        text = self.text(sha256)
        if text is None:
            return None
        try:
            return [{"role": role, "content": words} for role, words in json.loads(text)]
        except (ValueError, TypeError) as error:
            self.losses.lose_thing("text that is lost", f"messages {sha256[:12]}", why=str(error))
            return None

    def _problem(self, problem_id: str) -> Problem | None:
        try:
            return self.run.problem(problem_id)
        except StoreError as error:
            self.losses.lose_thing("problem that is lost", problem_id[:12], why=error.why)
            return None

    def _problem_source(self, problem_id: str) -> str | None:
        problem = self.problem(problem_id)
        return None if problem is None else self.redactor.text(problem.source)

    def _manifest(self) -> dict[str, Any]:
        try:
            return self.run.read_manifest()
        except StoreError as error:
            self.losses.lose_thing("run without a manifest", self.run.name, why=error.why)
            return {}

    def _lock(self) -> str | None:
        with contextlib.suppress(OSError):
            return (self.run.path / LOCK_FILE).read_text(encoding="utf-8")
        return None

    def _hardware(self) -> str | None:
        if not self.manifest:
            return None
        facts = {"host": self.manifest.get("host"), "device": self.manifest.get("device")}
        return self.redactor.text(canonical_json(facts))
