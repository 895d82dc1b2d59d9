r"""What is taken out of texts: forms that keys, paths, hosts and addresses have.

Each rule has hints, without any of which its pattern matches nowhere. Of many texts at once, those
that hold nothing are found by one pass of RE2 (pyarrow) over a pattern that is wider than all the
rules together, and only the others are gone through rule by rule: sixteen times as fast.

A rule's `wider` is its pattern without what RE2 lacks or reads otherwise. It must match wherever
the pattern does: no look-around, no `\b`, no `\w` or `\s` that a letter or blank beyond ASCII is
meant by. A test holds the two against each other on texts made of parts of secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

MIN_NAME = 3
"""Characters of a user or host name that is looked for."""
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
_ENDINGS = (
    "py|cuh?|cpp|cc|hpp|h|so|o|json|ya?ml|txt|log|pt|pth|safetensors|parquet|ipynb|sh"  # of files
)
_PATH = (
    rf"{_EDGE}(?:/(?:{_ROOTS})(?:/[\w.+@~\-]+)+/?"
    r"|/(?!usr/(?:include|lib|local)/|proc/|sys/|dev/)(?:[\w.+@\-]+/)+[\w.+\-]+"
    rf"\.(?:{_ENDINGS})\b"
    r"|~[\w\-]*(?:/[\w.+\-]+)+)"
    r"|\b[A-Za-z]:(?:\\{1,2}|/)(?:Users|Documents and Settings)(?:(?:\\{1,2}|/)[\w.+ \-]+)+"
)
_WIDER_PATH = (
    rf"/(?:{_ROOTS})/|/[^\s/]+\.(?:{_ENDINGS})(?:[^0-9A-Za-z_]|$)|~[^\s/]*/"
    r"|:[\\/]{1,2}(?:Users|Documents)"
)
_EMAIL = (
    r"\b[\w.+\-]+@[\w\-]+(?:\.[\w\-]+)*\.(?:com|org|net|edu|gov|io|dev|ai|co|de|uk|fr|ch|cn|jp|eu|us)"
    r"(?![\w(\[])"
)
_LOGIN = rf"{_EDGE}[a-z_][\w.\-]*@[\w.\-]+(?=:[~/])"
_URL_HOST = (
    r"(?<=://)(?:[^\s/@\"'\\]+@)?"
    r"(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:]+\]|[\w\-]+(?:\.[\w\-]+)*\.(?:local|internal|lan|corp"
    r"|intra|cluster|svc|home)|(?!localhost\b)[A-Za-z][\w\-]*)(?=[:/\"'\\\s]|$)"
)
_CREDENTIALS = r"(?<=://)[^\s/@:\"'\\]+:[^\s/@\"'\\]+(?=@)"
_BEFORE_AT = r"[0-9A-Za-z_.+\-\x{80}-\x{10FFFF}]@"
_ASSIGNED = r"[^0-9A-Za-z_]*[=:]"


@dataclass(frozen=True, slots=True)
class Rule:
    """One form."""

    kind: str
    """Of `KINDS` (kopt.data.corpus.redaction)."""
    pattern: re.Pattern[str]
    hints: tuple[str, ...]
    wider: str
    """For RE2."""


def _key(pattern: str, *hints: str, wider: str = "", flags: int = 0) -> Rule:
    return Rule("key", re.compile(pattern, flags), hints, wider or "|".join(hints))


RULES: tuple[Rule, ...] = (
    _key(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
         "PRIVATE KEY", flags=re.DOTALL),
    _key(r"\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{16,}", "sk-", "pk-", "rk-",
         wider=r"[spr]k-[A-Za-z0-9_\-]{16}"),
    _key(r"\bhf_[A-Za-z0-9]{16,}", "hf_", wider=r"hf_[A-Za-z0-9]{16}"),
    _key(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w\-]{16,})",
         "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
    _key(r"\bxox[abeprs]-[A-Za-z0-9\-]{10,}", "xox", wider="xox[abeprs]-"),
    _key(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", "AKIA", "ASIA"),
    _key(r"\bAIza[\w\-]{30,}", "AIza"),
    _key(r"\b(?:nvapi|gsk|tgp_v1|r8|wandb_v1)[-_][\w\-]{16,}", "nvapi", "gsk", "tgp_v1",
         "r8_", "r8-", "wandb", wider="(?:nvapi|gsk|tgp_v1|r8|wandb_v1)[-_]"),
    _key(r"\beyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*", "eyJ"),
    _key(r"(?<=Bearer )[\w.\-~+/]{12,}=*", "Bearer "),
    _key(r"(?<=bearer )[\w.\-~+/]{12,}=*", "bearer "),
    _key(r"\b[A-Z][A-Z0-9_]*(?:API_KEY|TOKEN|SECRET|PASSWORD|PASSWD|ACCESS_KEY)"
         r"(?:\\?[\"'])?\]?\s*[=:]\s*(?:\\?[\"'])?[^\s\"'\\,;]{8,}",
         "KEY", "TOKEN", "SECRET", "PASSW",
         wider=f"(?:_KEY|TOKEN|SECRET|PASSWORD|PASSWD){_ASSIGNED}"),
    _key(r"\b(?:api[_\-]?key|access[_\-]?token|auth[_\-]?token|secret|password|passwd)(?:\\?[\"'])?"
         r"\s*[=:]\s*\\?[\"'][^\s\"'\\]{8,}", "key", "token", "secret", "passw",
         wider=f"(?:key|token|secret|password|passwd){_ASSIGNED}"),
    Rule("key", re.compile(_CREDENTIALS), ("://",), "://"),
    Rule("host", re.compile(_URL_HOST), ("://",), "://"),
    Rule("user", re.compile(_LOGIN), ("@",), _BEFORE_AT),
    Rule("email", re.compile(_EMAIL), ("@",), _BEFORE_AT),
    Rule("path", re.compile(_PATH), ("/", ":\\"), _WIDER_PATH),
)  # fmt: skip


def named(kind: str, names: Iterable[str]) -> Iterable[Rule]:
    """Give a rule for each name that is one: long enough, and no word of the trade."""
    for name in sorted(set(names), key=lambda each: (-len(each), each)):
        if len(name) >= MIN_NAME and name.lower() not in COMMON_NAMES:
            pattern = re.compile(rf"(?:(?<!\w)|(?<=\\[nrt])){re.escape(name)}(?!\w)")
            yield Rule(kind, pattern, (name,), re.escape(name))


def wider_pattern(rules: Sequence[Rule]) -> str:
    """Return one pattern for RE2 that matches in every text that any of the rules does."""
    return "|".join(dict.fromkeys(rule.wider for rule in rules))


def may_hold(texts: Sequence[str], *, wider: str) -> list[bool]:
    """Return for each text whether a rule may match in it.

    Args:
        texts: of any length; what UTF-8 has no form for may hold anything.
        wider: of `wider_pattern`.
    """
    try:
        held = pa.array(texts, pa.large_string())
    except UnicodeEncodeError:  # a lone surrogate
        return [True] * len(texts)
    return list(map(bool, pc.match_substring_regex(held, wider).to_pylist()))
