"""What it means when an endpoint does not answer: try again, or never ask so again. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

from kopt.actors.programmers.openai.words import error_field, server_words

TroubleKind = Literal["retry", "overflow", "no_model", "key", "refused"]

_RETRIED = (408, 409, 425, 429)
_QUOTA = re.compile(r"insufficient_quota|billing|insufficient[ _](balance|credits?)|payment", re.I)
_TRANSIENT = re.compile(
    r"server.?error|internal|overload|rate.?limit|unavailable|time.?d?.?out", re.I
)
_NO_MODEL = re.compile(
    r"model_not_found|not a valid model|(unknown|invalid|no such) model"
    r"|model\b.{0,200}\b(does ?n.t|does not|not) (exist|found|available|supported)",
    re.I | re.S,
)
_OVERFLOW = re.compile(
    r"context_length_exceeded|string_above_max_length|exceed_context_size"
    r"|(context|sequence) (length|size|window)|maximum (model|prompt|input) length"
    r"|(prompt|input|messages?|request)\b.{0,80}\b(too (long|large)|longer than|exceeds?)\b"
    r"|too many tokens"
    r"|\btokens?\b.{0,120}\b(must be <=|exceeds?|must be (at most|less than)|must have less)",
    re.I | re.S,
)
_NOT_TAKEN = re.compile(
    r"un(supported|known|recogni[sz]ed|expected)|not (supported|permitted|allowed)|n.t support"
    r"|not support|extra (inputs|fields)",
    re.I,
)
_HINTS = {
    "seed": "programmer.seeded=false leaves the seed out",
    "n": "programmer.completions=apart asks for one completion a request",
    "temperature": "programmer.temperature=null leaves it to the server",
    "top_p": "programmer.top_p=null leaves it to the server",
    "max_tokens": "programmer.token_limit_key=max_completion_tokens names the limit otherwise",
    "max_completion_tokens": "programmer.token_limit_key=max_tokens names the limit otherwise",
    "stream_options": "programmer.stream=false asks for whole answers",
}
"""What to set where an endpoint names a parameter that it does not take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A request that was not answered."""

    kind: TroubleKind
    """`retry`: it may pass; `overflow`: the prompt is too long; `no_model` and `key`: the endpoint
    knows no such model, does not take the key; `refused`: it does not take the request."""
    reason: str
    """One line, in the server's words where it has any."""
    label: str
    """What it is counted under: the status, or `connection`."""
    after_s: float | None = None
    """Seconds that the server wants to be left alone for; None where it names none."""


def trouble_of(status: int, body: object, *, headers: Mapping[str, str] | None = None) -> Trouble:
    """Return what an error response means.

    Args:
        status: of the response, or what its body gives for one; 400 and above.
        body: parsed JSON, or text, or None. Untrusted.
        headers: of the response, names in any case if it is a mapping that does not mind.
    """
    words = server_words(body)
    marks = f"{error_field(body, 'code')} {error_field(body, 'type')} {words}"
    reason = f"{status}: {words}" if words else f"{status}"
    after_s = None
    kind: TroubleKind
    if status == 401:
        kind = "key"
    elif status == 402 or (status == 429 and _QUOTA.search(marks)):
        kind = "refused"
    elif status == 413 or (status in (400, 422, 429) and _OVERFLOW.search(marks)):
        kind = "overflow"
    elif status in _RETRIED or status >= 500:
        kind, after_s = "retry", retry_after_s(headers or {})
    elif status in (400, 404) and _NO_MODEL.search(marks):
        kind = "no_model"
    elif status == 403:
        kind = "key"
    else:
        kind = "refused"
        hint = _HINTS.get(error_field(body, "param"))
        if hint and _NOT_TAKEN.search(marks):
            reason = f"{reason}; {hint}"
        elif status in (404, 405):
            reason = f"{reason}; expected a base URL, such as http://host:8000/v1"
    return Trouble(kind=kind, reason=reason, label=str(status), after_s=after_s)


def embedded_trouble(body: Mapping[str, object]) -> Trouble:
    """Return what an error means that came under status 200, as gateways and streams send them."""
    code = error_field(body, "code") or error_field(body, "status")
    if re.fullmatch(r"[45]\d\d", code):
        return trouble_of(int(code), body)
    marks = f"{code} {error_field(body, 'type')} {server_words(body)}"
    return trouble_of(500 if _TRANSIENT.search(marks) else 400, body)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return how long a response asks to wait, in seconds; None where it names no such time.

    A date is taken against the response's own, so that no two clocks need to agree.
    """
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / divisor
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    until, now = _date(headers.get("retry-after")), _date(headers.get("date"))
    if until is None or now is None:
        return None
    return max(0.0, (until - now).total_seconds())


def _date(text: str | None) -> datetime | None:
    try:
        date = None if text is None else parsedate_to_datetime(text)
    except ValueError:
        return None
    return date.replace(tzinfo=date.tzinfo or UTC) if date else None
