"""Source text as runs of a kind: keywords, strings, comments and so on, by pygments.

The page makes an element of each run and sets its text: no markup comes from a candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from pygments.lexer import Lexer
from pygments.lexers.c_cpp import CppLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

from kopt.candidate import Language

PYTHON: Lexer = PythonLexer()
CPP: Lexer = CppLexer()  # type: ignore[no-untyped-call]  # of the stubs
Run = tuple[str, str]
"""Kind (a key of KINDS, or empty for plain text) and text."""
KINDS = {
    "c": Comment,
    "k": Keyword,
    "s": String,
    "n": Number,
    "d": Name.Decorator,
    "f": Name.Function,
    "t": Name.Class,
    "b": Name.Builtin,
    "w": Operator.Word,
}
"""Kind to the class of tokens that it stands for."""
NATIVE: tuple[Language, ...] = ("cpp", "cuda", "cute")
"""Languages that are written in string literals of a Python module."""
NATIVE_LINES = 3
"""Line ends from which on a string literal of such a module is taken as native source."""


def highlighted(source: str, *, language: Language) -> list[Run]:
    """Return a candidate's source as runs; joined, their texts are the source.

    Args:
        source: a Python module, as candidates of every language are.
        language: of its kernels.
    """
    runs = _merged(_runs(source, PYTHON))
    if language in NATIVE:
        runs = _merged(_with_native(runs))
    return list(runs)


def _runs(source: str, lexer: Lexer) -> Iterator[Run]:
    # Unprocessed: `get_tokens` would change ends of lines.
    for _, token, text in lexer.get_tokens_unprocessed(source):
        yield _kind(token), text


@cache
def _kind(token: _TokenType) -> str:
    lineage = token.split()
    return next((kind for kind, parent in KINDS.items() if parent in lineage), "")


def _with_native(runs: Iterable[Run]) -> Iterator[Run]:
    for kind, text in runs:
        if kind == "s" and text.count("\n") >= NATIVE_LINES:
            yield from _runs(text, CPP)
        else:
            yield kind, text


def _merged(runs: Iterable[Run]) -> Iterator[Run]:
    held: Run | None = None
    for kind, text in runs:
        if held is not None and held[0] == kind:
            held = kind, held[1] + text
            continue
        if held is not None:
            yield held
        held = kind, text
    if held is not None:
        yield held
