"""Which function or type a place in a C++ text belongs to. A scanner, no parser.

Comments, strings and preprocessor lines are passed over; `{` opens a scope that is named by what
stands before it. Where braces do not match (both branches of an `#if` open one), the text is
`is_balanced=False` and its scopes are not to be relied on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

ScopeKind = Literal["namespace", "type", "function", "block"]

_TOKEN = re.compile(
    r"//(?:[^\n\\]|\\.)*|/\*.*?\*/"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.){1,8}'"
    r"|^[ \t]*\#[ \t]*(?P<directive>\w+)(?:[^\n\\]|\\\n|\\.)*"
    r"|(?P<mark>[{}();])"
    r"|\b(?P<word>static_assert|CUTE_STATIC_ASSERT_V|CUTE_STATIC_ASSERT|assert)\b(?=[ \t]*\()",
    re.DOTALL | re.MULTILINE,
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TYPE = re.compile(
    r"\b(?:struct|class|union)\s+(?:alignas\([^()]*\)\s*|[A-Z_]+\([^()]*\)\s*)?(\w+)\s*(<)?"
)
_NAME = re.compile(r"([A-Za-z_]\w*)\s*$")
_BLOCKS = frozenset(("if", "for", "while", "switch", "catch", "else", "do", "try", "return"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a `{` opens."""

    kind: ScopeKind
    name: str = ""
    parameters: tuple[str, ...] | None = None
    """Of its template; None where it is none."""
    is_special: bool = False
    """A specialisation of a template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """A `static_assert` or the like."""

    word: str
    arguments: str
    """Between its parentheses, as written."""
    start: int
    """Place in the text."""
    end: int
    scopes: tuple[Scope, ...]
    """From the outside."""
    in_branch: bool
    """Whether it stands in a branch of the preprocessor."""


@dataclass(slots=True)
class Scan:
    """A text gone through once."""

    text: str
    is_balanced: bool = True
    assertions: list[Assertion] = field(default_factory=list)
    opened: list[Scope] = field(default_factory=list)
    """Every type and function, in order."""
    spans: list[tuple[int, int, Scope]] = field(default_factory=list)
    """Where each of them begins and ends."""
    branches: list[tuple[int, int]] = field(default_factory=list)
    """Where the preprocessor's outermost conditions begin and end."""

    def __post_init__(self) -> None:
        """Go through it."""
        stack: list[Scope] = []
        starts: list[int] = []
        branches, branch_start = 0, 0
        head = 0
        parens: list[int] = []
        waiting: list[tuple[str, int, int, tuple[Scope, ...], bool]] = []
        for match in _TOKEN.finditer(self.text):
            directive, mark, word = match["directive"], match["mark"], match["word"]
            if directive is not None:
                if directive in ("if", "ifdef", "ifndef"):
                    branch_start = branch_start if branches else match.start()
                    branches += 1
                elif directive == "endif" and branches:
                    branches -= 1
                    if not branches:
                        self.branches.append((branch_start, match.end()))
                if not parens:
                    head = max(head, match.end())
            elif word is not None:
                waiting.append((word, match.start(), len(parens), tuple(stack), branches > 0))
            elif mark == "(":
                parens.append(match.end())
            elif mark == ")":
                if not parens:
                    self.is_balanced = False
                    continue
                opened = parens.pop()
                if waiting and waiting[-1][2] == len(parens):
                    name, start, _, scopes, in_branch = waiting.pop()
                    self.assertions.append(
                        Assertion(
                            word=name,
                            arguments=self.text[opened : match.start()],
                            start=start,
                            end=match.end(),
                            scopes=scopes,
                            in_branch=in_branch,
                        )
                    )
            elif mark == "{":
                scope = Scope(kind="block")
                if not parens:
                    scope = scope_of(self.text[head : match.start()], inside=stack)
                    head = match.end()
                    if scope.kind in ("type", "function"):
                        self.opened.append(scope)
                stack.append(scope)
                starts.append(match.start())
            elif mark == "}":
                if stack:
                    closed, start = stack.pop(), starts.pop()
                    if closed.kind in ("type", "function"):
                        self.spans.append((start, match.end(), closed))
                else:
                    self.is_balanced = False
                if not parens:
                    head = match.end()
            elif mark == ";" and not parens:
                head = match.end()
        if branches:
            self.branches.append((branch_start, len(self.text)))
        self.is_balanced = self.is_balanced and not stack and not parens


def scope_of(head: str, *, inside: list[Scope]) -> Scope:
    """Return the scope that a `{` opens after a head."""
    text = _COMMENT.sub(" ", head).strip()
    if inside and inside[-1].kind in ("function", "block"):
        return Scope(kind="block")
    if re.search(r"\bnamespace\b[\w:\s]*$", text) or text.startswith('extern "C"'):
        return Scope(kind="namespace")
    parameters, rest = template_of(text)
    found = _TYPE.match(rest.strip())
    if found is not None:
        special = found[2] is not None or parameters == ()
        return Scope(kind="type", name=found[1], parameters=parameters, is_special=special)
    before, paren, _ = rest.partition("(")
    named = _NAME.search(before)
    if not paren or named is None or named[1] in _BLOCKS:
        return Scope(kind="block")
    return Scope(kind="function", name=named[1], parameters=parameters, is_special=parameters == ())


def template_of(head: str) -> tuple[tuple[str, ...] | None, str]:
    """Return the parameters of the template that a head begins, and what follows it.

    Of several templates (a member's of a template) the last one's.
    """
    parameters: tuple[str, ...] | None = None
    rest = head.lstrip()
    while match := re.match(r"template\s*<", rest):
        depth, at = 1, match.end()
        while at < len(rest) and depth:
            # `->` and `>=` are not met in these lists; `(a > b)` is written with parentheses.
            depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(rest[at], 0)
            at += 1
        parameters = tuple(
            name for piece in split_top(rest[match.end() : at - 1]) if (name := _parameter(piece))
        )
        rest = rest[at:].lstrip()
        if requires := re.match(r"requires\b[^{;]*?(?=\b(?:struct|class|void|auto)\b)", rest):
            rest = rest[requires.end() :]
    return parameters, rest


def split_top(text: str) -> list[str]:
    """Return the parts of a list between commas that are in no brackets."""
    parts: list[str] = []
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += {"<": 1, "(": 1, "{": 1, "[": 1, ">": -1, ")": -1, "}": -1, "]": -1}.get(
            character, 0
        )
        if character == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def blanked(text: str) -> str:
    """Return a text with comments and strings as spaces; places and lines stay."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        if match["directive"] is not None or match["mark"] or match["word"]:
            return found
        return "".join("\n" if character == "\n" else " " for character in found)

    return _TOKEN.sub(blank, text)


def _parameter(piece: str) -> str:
    """Return `Name`, `Name=Default` for a default that is a name or a number, `Name=?`, `...`."""
    declared, _, default = piece.partition("=")
    if "..." in declared:
        return "..."
    named = _NAME.search(declared)
    name = named[1] if named and named[1] not in ("class", "typename", "int") else "_"
    if not default:
        return name
    default = default.strip()
    return f"{name}={default}" if re.fullmatch(r"\w+", default) else f"{name}=?"
