"""Texts of a run: read many at once, bounded, what is lost counted once."""

from pathlib import Path

import pytest

from kopt.data.artefacts import Artefacts
from kopt.data.corpus import kept_texts
from kopt.data.corpus.kept_texts import KeptTexts
from kopt.data.corpus.losses import Losses
from kopt.data.corpus.redaction import Redactor


def test_texts_read_ahead_are_those_read_one_by_one(tmp_path: Path) -> None:
    artefacts = Artefacts(tmp_path)
    names = [artefacts.put(f"text {number} of mallory") for number in range(5)]
    losses = Losses()
    texts = KeptTexts(artefacts, redactor=Redactor(users=["mallory"]), losses=losses)
    texts.read_ahead([*names[:3], None, "0" * 64])
    assert [texts.get(name) for name in names] == [f"text {n} of <user>" for n in range(5)]
    assert texts.get("0" * 64) is None
    assert losses.counts == {"text that is lost": 1}


def test_what_is_kept_is_bounded_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_texts, "KEPT_CHARACTERS", 250)
    artefacts = Artefacts(tmp_path)
    names = [artefacts.put(f"{number}" * 100) for number in range(5)]
    texts = KeptTexts(artefacts, redactor=Redactor(), losses=Losses())
    texts.read_ahead(names)
    artefacts.path(names[0]).unlink()
    assert texts.get(names[4]) == "4" * 100
    assert texts.get(names[0]) is None
