r"""Redaction: keys, paths, host names and user names of a run are taken out of its texts.

What has a form of its own (a key of a known service, a private key, a path below a place that
people and clusters use, an address) is found in any text. Names have none: those of the run's hosts
and users are learned from its manifest and lock, and taken out wherever they stand as a word. Names
that are words of the trade (`root`, `test`, …) stay: taking them out would break programs.

Texts may be JSON: no replacement needs an escape, and a name may follow `\n`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from kopt.data.corpus.redaction_rules import RULES, may_hold, named, wider_pattern

KINDS = ("key", "path", "host", "user", "email")
"""What is taken out; `<key>`, `<path>`, … stand in its place."""
SHORT = 2_000
"""Characters up to which a text is likely to come again: strategies, reasons, parameters."""
KEPT_SHORT = 4_096


class Redactor:
    """Takes out of texts what is nobody else's business, and counts what it took."""

    def __init__(self, *, hosts: Iterable[str] = (), users: Iterable[str] = ()) -> None:
        """Take the names that are looked for beside what has a form.

        Args:
            hosts: names of machines, whole or short.
            users: names of people's accounts.
        """
        self.counts: Counter[str] = Counter()
        """Kind (of KINDS) to how often it was taken out; a text that comes again may count once."""
        self._rules = (*RULES, *named("host", hosts), *named("user", users))
        self._wider = wider_pattern(self._rules)
        self._ahead: dict[str, str] = {}
        self._short = lru_cache(maxsize=KEPT_SHORT)(self._redacted)

    def text(self, text: str) -> str:
        """Return the text without what is taken out; equal texts give equal ones."""
        known = self._ahead.get(text)
        if known is not None:
            return known
        return self._short(text) if len(text) <= SHORT else self._redacted(text)

    def ahead(self, texts: Iterable[str]) -> None:
        """Go through texts that `text` is about to be given, in place of those before."""
        distinct = list(dict.fromkeys(texts))
        self._ahead = dict(zip(distinct, self.texts(distinct), strict=True))

    def texts(self, texts: Sequence[str]) -> list[str]:
        """Return the same of many texts, much faster than one by one."""
        may = may_hold(texts, wider=self._wider)
        return [
            self._redacted(text) if held else text for text, held in zip(texts, may, strict=True)
        ]

    def optional(self, text: str | None) -> str | None:
        """Return the same of a text that may be missing."""
        return None if text is None else self.text(text)

    def _redacted(self, text: str) -> str:
        for rule in self._rules:
            for hint in rule.hints:
                if hint in text:
                    text, times = rule.pattern.subn(f"<{rule.kind}>", text)
                    if times:
                        self.counts[rule.kind] += times
                    break
        return text


def redactor_of(
    manifest: Mapping[str, Any] | None, *, lock: str | None, words: Iterable[str] = ()
) -> Redactor:
    """Return the redactor of a run.

    Args:
        manifest: of the run; None where it has none.
        lock: text of its lock, which names the host that ran it; None where there is none.
        words: further names that must not remain.
    """
    said = json.dumps(manifest, ensure_ascii=False) if manifest else ""
    users = set(re.findall(r"/(?:home|Users)/([\w.\-]+)", said))
    users |= set(re.findall(r"[A-Za-z]:\\\\Users\\\\([\w.\-]+)", said))
    hosts = set(re.findall(r"(?:ray|https?)://(?:[^\s/@\"]+@)?([A-Za-z][\w.\-]*)", said))
    hosts = {host for host in hosts if not _is_public(host)}
    try:
        owner = json.loads(lock or "{}")
    except ValueError:
        owner = {}
    if isinstance(owner, dict) and isinstance(owner.get("host"), str):
        hosts |= {owner["host"], owner["host"].partition(".")[0]}
    return Redactor(hosts=hosts, users={*users, *words})


def _is_public(host: str) -> bool:
    return "." in host and host.rpartition(".")[2] in ("com", "org", "net", "ai", "io", "dev")
