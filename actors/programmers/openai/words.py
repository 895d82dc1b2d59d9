"""An endpoint's own words, made fit for one line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

MAX_WORDS = 300
"""Characters of a server's message that are repeated."""
_TITLE = re.compile(r"<title[^>]{0,100}>([^<]{1,200})", re.IGNORECASE)


def one_line(text: str, *, limit: int = MAX_WORDS) -> str:
    """Return a text as one printable line of at most `limit` characters."""
    words = " ".join(text[: 8 * limit].split())
    line = "".join(c if c.isprintable() else "?" for c in words)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def clean(text: str) -> str:
    """Return a text that UTF-8 has a form for: half a surrogate pair becomes `?`.

    JSON may bring one by an escape; such a text would come back from disk as another.
    """
    return text.encode("utf-8", errors="replace").decode("utf-8")


def server_words(body: object) -> str:
    """Return what an error's body says, in one line; empty where it says nothing.

    Args:
        body: as parsed from JSON, or a text that is none, or None.
    """
    if isinstance(body, Mapping):
        inner = body.get("error")
        if isinstance(inner, Mapping | str) and inner:
            return server_words(inner)
        for key in ("message", "detail", "msg"):
            value = body.get(key)
            if isinstance(value, str) and value:
                return one_line(value)
        return one_line(json.dumps(body, ensure_ascii=False, default=str)) if body else ""
    if isinstance(body, str):
        if body.lstrip()[:1] == "<":
            title = _TITLE.search(body[:10_000])
            return "an HTML page" + (f", “{one_line(title[1], limit=80)}”" if title else "")
        return one_line(body)
    return "" if body is None else one_line(json.dumps(body, ensure_ascii=False, default=str))


def error_field(body: object, key: str) -> str:
    """Return a field of an error's body (`code`, `type`, `param`) as text; empty if absent."""
    if not isinstance(body, Mapping):
        return ""
    inner = body.get("error")
    found = (inner if isinstance(inner, Mapping) else body).get(key)
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) else ""
