"""Whether what a failed light compilation says would be said under torch's own headers too.

The light headers declare less than torch's. Up to the first error they gave every name of the
source the meaning that torch's give it; from there, an error is certain where more declarations
cannot mend it: a name that no header of torch's or of the system declares, however spelled out, or
a slip of grammar beside which there is no macro. All errors must be of that kind, and then they
are what torch's own build would print; otherwise it is asked.

Run beside `light_compiler`: nothing but the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from pathlib import Path

_GCC = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):\d+: (?:fatal )?error: (?P<what>.*)$", re.M)
_NVCC = re.compile(r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): error: (?P<what>.*)$", re.M)
_ANY = re.compile(r"\berror:", re.M)
_QUOTED = "[\u2018'\"](?P<name>[A-Za-z_]\\w*)[\u2019'\"]"
_MISSING = tuple(
    re.compile(pattern.replace("NAME", _QUOTED))
    for pattern in (
        r"^NAME was not declared in this scope",
        r"^NAME has not been declared",
        r"^NAME does not name a type",
        r"^NAME is not a member of ",
        r"has no member named NAME",
        r"^identifier NAME is undefined",
        r"^(?:namespace|class|struct) .* has no member NAME",
    )
)
_GRAMMAR = re.compile(
    r"^expected (?:an? )?(?:[\u2018'\"][;,(){}\]][\u2019'\"]"
    r"|[\u2018'],[\u2019'] or [\u2018'];[\u2019']"
    r"|unqualified-id|declaration|initializer|a declaration|an identifier)"
    r"|^missing terminating |^unterminated "
)
_SUGGESTION = re.compile(r"; did you mean [\u2018'\"][^\u2019'\"\n]*[\u2019'\"]\?")
"""Made of the names that were declared: not ours to pass on."""
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|elif|ifdef|ifndef)\b(.*)$", re.M)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
_WORD = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"\b[A-Z][A-Z0-9_]+\b")


def certain_words(said: str, *, sources: Mapping[Path, str], known: Container[str]) -> str | None:
    """Return what torch's own build would say, or None where that is not certain.

    Args:
        said: by the compiler, which failed under the light headers.
        sources: the source and what it includes from beside it, by path.
        known: every word in torch's headers and those that they include, preprocessed or not.
    """
    found = [*_GCC.finditer(said), *_NVCC.finditer(said)]
    if not found or len(found) != len(_ANY.findall(said)) or "kopt_light" in said:
        return None
    if _depends_on_headers(sources, known):
        return None
    texts = {str(path): text.splitlines() for path, text in sources.items()}
    for error in found:
        lines = texts.get(error["file"])
        if lines is None or not _is_certain(error["what"], lines, int(error["line"]), known):
            return None
    return _SUGGESTION.sub("", said)


def _depends_on_headers(sources: Mapping[Path, str], known: Container[str]) -> bool:
    """Whether a condition asks for what headers define: then another text is compiled with them."""
    own = {name for text in sources.values() for name in _DEFINED.findall(text)}
    asked = {
        word
        for text in sources.values()
        for condition in _CONDITION.findall(text)
        for word in _WORD.findall(condition)
    }
    return any(
        word in known
        for word in asked - own - {"defined"}
        if not word.startswith("__")  # the compiler's own
    )


def _is_certain(what: str, lines: list[str], number: int, known: Container[str]) -> bool:
    for pattern in _MISSING:
        if match := pattern.search(what):
            return match["name"] not in known
    if not _GRAMMAR.search(what):
        return False
    near = lines[number - 1 : number]
    for line in reversed([line for line in lines[: number - 1] if line.strip()]):
        if line.rstrip().endswith((";", "{", "}")):
            break
        near.append(line)  # a slip is noticed at the next token, which may be on a later line
    return not any(word in known for line in near for word in _MACRO.findall(line))
