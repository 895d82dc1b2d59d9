"""Texts of a run's artefacts, redacted: many read at once, those used last kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from kopt.data.artefacts import Artefacts
from kopt.data.corpus.losses import Losses
from kopt.data.corpus.redaction import Redactor
from kopt.errors import StoreError

KEPT_TEXTS = 4_096
"""Texts kept: those of one expansion, and system messages, come again."""
KEPT_CHARACTERS = 64_000_000
"""Of all of them together; the last one is kept however long it is."""


class KeptTexts:
    """Reads artefacts for a corpus. A text that is lost is None, and counted once."""

    def __init__(self, artefacts: Artefacts, *, redactor: Redactor, losses: Losses) -> None:
        """Take a run's artefacts.

        Args:
            artefacts: of the run.
            redactor: of the run.
            losses: told of texts that are lost.
        """
        self._artefacts = artefacts
        self._redactor = redactor
        self._losses = losses
        self._kept: OrderedDict[str, str | None] = OrderedDict()
        self._characters = 0

    def get(self, sha256: str) -> str | None:
        """Return a text; None where it is lost."""
        if sha256 in self._kept:
            self._kept.move_to_end(sha256)
            return self._kept[sha256]
        raw = self._read(sha256)
        text = None if raw is None else self._redactor.text(raw)
        self._keep(sha256, text)
        return text

    def read_ahead(self, sha256s: Iterable[str | None]) -> None:
        """Read texts that are about to be asked for, far faster than one by one."""
        wanted = [each for each in dict.fromkeys(sha256s) if each and each not in self._kept]
        raw = {sha256: self._read(sha256) for sha256 in wanted}
        there = {sha256: text for sha256, text in raw.items() if text is not None}
        clean = dict(zip(there, self._redactor.texts(list(there.values())), strict=True))
        for sha256 in wanted:
            self._keep(sha256, clean.get(sha256))

    def _read(self, sha256: str) -> str | None:
        try:
            return self._artefacts.get(sha256)
        except (StoreError, UnicodeDecodeError) as error:
            why = str(error)[-120:]
            self._losses.lose_thing("text that is lost", f"artefact {sha256[:12]}", why=why)
            return None

    def _keep(self, sha256: str, text: str | None) -> None:
        self._kept[sha256] = text
        self._characters += len(text or "")
        while len(self._kept) > KEPT_TEXTS or (
            self._characters > KEPT_CHARACTERS and len(self._kept) > 1
        ):
            _, old = self._kept.popitem(last=False)
            self._characters -= len(old or "")
