"""Text from outside as text that can be kept: one way to end a line, and nothing UTF-8 lacks."""

from __future__ import annotations


def clean_text(text: str) -> str:
    r"""Return a text without its byte order mark, `\r`, NUL characters and lone surrogates.

    A source is hashed, written to a file and read back: what is lost on the way would make it
    another. Surrogates that belong together become the character they stand for, others U+FFFD.
    """
    if not text.isascii():
        text = text.removeprefix("\ufeff")
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
