"""Answers in a form that the server holds a model to: a JSON schema, or a function's arguments.

One object for each completion, the strategy first, so that a model plans before it writes
(KernelPro §3.2.2: each of N completions with its strategy note). A weak model fills an unbounded
string to the token limit, so the strategy has its bound. The code cannot have one: what vLLM makes
of a `maxLength` (xgrammar 0.2.8 and 0.2.9) lets no escape into the string, and so no line break and
no quote; `programmer.max_tokens` and `max_answer_bytes` bound it. No `pattern` stands beside a
`maxLength`, and the function is `strict`: there are servers that refuse the one, and others that
pass over the schema without the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeGuard

from kopt.actors.programmers.openai.tool_calls import ANSWER_TOOL
from kopt.actors.programmers.openai.trouble import Trouble
from kopt.candidate import Language

Structured = Literal["off", "json_schema", "tool"]

MAX_STRATEGY = 600
"""Characters of a strategy: one line, without quotes."""
REFUSING = ("400", "404", "405", "422")
"""Statuses by which servers say that they do not know a field of the request."""


def structured_fields(structured: Structured, *, languages: Sequence[Language]) -> dict[str, Any]:
    """Return the fields of a request that ask for the form; none for `off`.

    Args:
        structured: how it is asked for.
        languages: that may be named.
    """
    schema = answer_schema(languages)
    match structured:
        case "off":
            return {}
        case "json_schema":
            wanted = {"name": ANSWER_TOOL, "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": wanted}}
        case "tool":
            function = {
                "name": ANSWER_TOOL,
                "description": "Hands in the module, whole.",
                "strict": True,
                "parameters": schema,
            }
            return {
                "tools": [{"type": "function", "function": function}],
                "tool_choice": {"type": "function", "function": {"name": ANSWER_TOOL}},
            }


def answer_schema(languages: Sequence[Language]) -> dict[str, Any]:
    """Return the JSON schema of one answer."""
    return {
        "type": "object",
        "properties": {
            "strategy": {"type": "string", "maxLength": MAX_STRATEGY},
            "language": {"type": "string", "enum": list(languages)},
            "code": {"type": "string"},
        },
        "required": ["strategy", "language", "code"],
        "additionalProperties": False,
    }


def may_be_the_form(outcome: object) -> TypeGuard[Trouble]:
    """Return whether a server may have refused a request for the form that it asked for."""
    return isinstance(outcome, Trouble) and outcome.kind == "refused" and outcome.label in REFUSING
