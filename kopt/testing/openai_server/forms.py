"""An author's text in the form that a request holds it to, and within its limit of tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

CHARACTERS_OF_A_TOKEN = 4
_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_STRATEGY = re.compile(r"^strategy: *(.*)$", re.MULTILINE)


def message_in_form(
    text: str, *, body: Mapping[str, Any], finish: str, is_honoured: bool
) -> dict[str, Any]:
    """Return a choice's message, with its `finish_reason`.

    Args:
        text: as the author wrote it.
        body: of the request.
        finish: why it ended, unless it meets the limit.
        is_honoured: whether the server knows of schemas and named functions.
    """
    function = _named_function(body) if is_honoured else ""
    if function or (is_honoured and _schema(body) is not None):
        text = _as_json(text, _schema(body) or _parameters(body, function))
    limit = body.get("max_tokens") or body.get("max_completion_tokens")
    if limit is not None and len(text) > limit * CHARACTERS_OF_A_TOKEN:
        text, finish = text[: limit * CHARACTERS_OF_A_TOKEN], "length"
    if not function:
        return {"content": text, "finish_reason": finish}
    # A named call ends with `stop`, as vLLM's do.
    call = {"name": function, "arguments": text}
    calls = [{"id": "call-0", "type": "function", "index": 0, "function": call}]
    return {"content": None, "tool_calls": calls, "finish_reason": finish}


def _named_function(body: Mapping[str, Any]) -> str:
    choice = body.get("tool_choice")
    return choice["function"]["name"] if isinstance(choice, Mapping) else ""


def _schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    wanted = body.get("response_format") or {}
    schema: Mapping[str, Any] | None = wanted.get("json_schema", {}).get("schema")
    return schema


def _parameters(body: Mapping[str, Any], function: str) -> Mapping[str, Any]:
    return next(
        tool["function"]["parameters"]
        for tool in body["tools"]
        if tool["function"]["name"] == function
    )


def _as_json(text: str, schema: Mapping[str, Any]) -> str:
    """The author's strategy and module as the schema's object: its strings within their bounds."""
    fenced, strategy = _FENCED.search(text), _STRATEGY.search(text)
    values = {
        "strategy": strategy[1] if strategy else "",
        "code": fenced[1] if fenced else text,
    }
    made = {}
    for name, field in schema["properties"].items():
        value = field["enum"][0] if "enum" in field else values.get(name, "")
        made[name] = value[: field.get("maxLength", len(value))]
    return json.dumps(made)
