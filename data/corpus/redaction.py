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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

KINDS = ("key", "path", "host", "user", "email")
"""What is taken out; `<key>`, `<path>`, … stand in its place."""
MIN_NAME = 3
"""Characters of a user or host name that is looked for."""
SHORT = 2_000
"""Characters up to which a text is likely to come again: strategies, reasons, parameters."""
KEPT_SHORT = 4_096
COMMON_NAMES = frozenset(
    (
        *("root", "admin", "user", "users", "ubuntu", "test", "tests", "home", "data", "work"),
        *("runner", "docker", "debian", "centos", "default", "build", "local", "localhost", "cuda"),
        *("host", "node", "server", "model", "torch", "triton", "python", "kernel", "worker"),
        *("shared", "public", "nobody", "main", "master", "slurm", "ray", "gpu", "cpu", "jovyan"),
    )
)
"""Names that are also words: never looked for by themselves. Paths and addresses go anyway."""
_EDGE = r"(?:(?<![\w.\-])|(?<=\\[nrt]))"
_ROOTS = (
    "home|Users|root|tmp|var|mnt|data|datasets|scratch|work|workspace|srv|nfs|lustre|gpfs|fsx|efs"
    "|private|media|storage|projects?|run/user|dev/shm|beegfs|content|kaggle|opt"
)
_PATH = re.compile(
    rf"{_EDGE}(?:/(?:{_ROOTS})(?:/[\w.+@~\-]+)+/?"
    r"|/(?!usr/(?:include|lib|local)/|proc/|sys/|dev/)(?:[\w.+@\-]+/)+[\w.+\-]+"
    r"\.(?:py|cuh?|cpp|cc|hpp|h|so|o|json|ya?ml|txt|log|pt|pth|safetensors|parquet|ipynb|sh)\b"
    r"|~[\w\-]*(?:/[\w.+\-]+)+)"
    r"|\b[A-Za-z]:(?:\\{1,2}|/)(?:Users|Documents and Settings)(?:(?:\\{1,2}|/)[\w.+ \-]+)+"
)
_EMAIL = re.compile(
    r"\b[\w.+\-]+@[\w\-]+(?:\.[\w\-]+)*\.(?:com|org|net|edu|gov|io|dev|ai|co|de|uk|fr|ch|cn|jp|eu|us)"
    r"(?![\w(\[])"
)
_LOGIN = re.compile(rf"{_EDGE}[a-z_][\w.\-]*@[\w.\-]+(?=:[~/])")
_URL_HOST = re.compile(
    r"(?<=://)(?:[^\s/@\"'\\]+@)?"
    r"(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:]+\]|[\w\-]+(?:\.[\w\-]+)*\.(?:local|internal|lan|corp"
    r"|intra|cluster|svc|home)|(?!localhost\b)[A-Za-z][\w\-]*)(?=[:/\"'\\\s]|$)"
)
_CREDENTIALS = re.compile(r"(?<=://)[^\s/@:\"'\\]+:[^\s/@\"'\\]+(?=@)")


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...]
    """Without any of these in a text, the pattern matches nowhere in it."""


def _key(pattern: str, *hints: str, flags: int = 0) -> _Rule:
    return _Rule("key", re.compile(pattern, flags), hints)


_RULES: tuple[_Rule, ...] = (
    _key(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
         "PRIVATE KEY", flags=re.DOTALL),
    _key(r"\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{16,}", "sk-", "pk-", "rk-"),
    _key(r"\bhf_[A-Za-z0-9]{16,}", "hf_"),
    _key(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w\-]{16,})",
         "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
    _key(r"\bxox[abeprs]-[A-Za-z0-9\-]{10,}", "xox"),
    _key(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", "AKIA", "ASIA"),
    _key(r"\bAIza[\w\-]{30,}", "AIza"),
    _key(r"\b(?:nvapi|gsk|tgp_v1|r8|wandb_v1)[-_][\w\-]{16,}", "nvapi", "gsk", "tgp_v1",
         "r8_", "wandb"),
    _key(r"\beyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*", "eyJ"),
    _key(r"(?<=Bearer )[\w.\-~+/]{12,}=*", "Bearer "),
    _key(r"(?<=bearer )[\w.\-~+/]{12,}=*", "bearer "),
    _key(r"\b[A-Z][A-Z0-9_]*(?:API_KEY|TOKEN|SECRET|PASSWORD|PASSWD|ACCESS_KEY)"
         r"(?:\\?[\"'])?\]?\s*[=:]\s*(?:\\?[\"'])?[^\s\"'\\,;]{8,}",
         "KEY", "TOKEN", "SECRET", "PASSW"),
    _key(r"\b(?:api[_\-]?key|access[_\-]?token|auth[_\-]?token|secret|password|passwd)(?:\\?[\"'])?"
         r"\s*[=:]\s*\\?[\"'][^\s\"'\\]{8,}", "key", "token", "secret", "passw"),
    _Rule("key", _CREDENTIALS, ("://",)),
    _Rule("host", _URL_HOST, ("://",)),
    _Rule("user", _LOGIN, ("@",)),
    _Rule("email", _EMAIL, ("@",)),
    _Rule("path", _PATH, ("/", ":\\")),
)  # fmt: skip


class Redactor:
    """Takes out of texts what is nobody else's business, and counts what it took."""

    def __init__(self, *, hosts: Iterable[str] = (), users: Iterable[str] = ()) -> None:
        """Take the names that are looked for beside what has a form.

        Args:
            hosts: names of machines, whole or short.
            users: names of people's accounts.
        """
        self.counts: Counter[str] = Counter()
        """Kind (of KINDS) to how often it was taken out, of texts that come again once."""
        self._rules = (*_RULES, *_named("host", hosts), *_named("user", users))
        self._short = lru_cache(maxsize=KEPT_SHORT)(self._redacted)

    def text(self, text: str) -> str:
        """Return the text without what is taken out; equal texts give equal ones."""
        return self._short(text) if len(text) <= SHORT else self._redacted(text)

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


def _named(kind: str, names: Iterable[str]) -> Iterable[_Rule]:
    for name in sorted(set(names), key=lambda each: (-len(each), each)):
        if len(name) >= MIN_NAME and name.lower() not in COMMON_NAMES:
            pattern = re.compile(rf"(?:(?<!\w)|(?<=\\[nrt])){re.escape(name)}(?!\w)")
            yield _Rule(kind, pattern, (name,))
