"""Bodies of the scripted server: choices, usage, events of a stream, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kopt.testing.openai_server.authors import Author
from kopt.testing.openai_server.behaviour import Asked, Behaviour
from kopt.testing.openai_server.forms import CHARACTERS_OF_A_TOKEN, message_in_form
from kopt.testing.openai_server.vllm_fields import token_fields

PIECE_CHARACTERS = 40
"""Of a text in one event of a stream."""
HTML = "<!doctype html><html><head><title>Bad Gateway</title></head><body>no</body></html>"


def error_body(status: int, error: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the body of an error, as OpenAI sends it."""
    plain = {"message": f"scripted error {status}", "type": "server_error", "code": None}
    return {"error": plain if error is None else dict(error)}


def messages_of(asked: Asked, behaviour: Behaviour, author: Author) -> list[dict[str, Any]]:
    """Return each choice's message and `finish_reason`, together as one mapping."""
    given = asked.num_choices if behaviour.num_choices is None else behaviour.num_choices
    return [_message(asked, behaviour, author, choice) for choice in range(given)]


def _message(asked: Asked, behaviour: Behaviour, author: Author, choice: int) -> dict[str, Any]:
    match behaviour.kind:
        case "null_content":
            return {"content": None, "finish_reason": "stop"}
        case "refusal":
            return {"content": None, "refusal": "I cannot help.", "finish_reason": "stop"}
        case "content_filter":
            return {"content": "", "finish_reason": "content_filter"}
        case "reasoning":
            thought = {"content": None, "reasoning_content": "Let me think. " * 20}
            return {**thought, "finish_reason": "length"}
        case "tool_calls":
            calls = [
                {
                    "id": f"call-{asked.number}-{choice}-{index}",
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                    "index": index,
                }
                for index, (name, arguments) in enumerate(map(_call, behaviour.calls))
            ]
            return {"content": None, "tool_calls": calls, "finish_reason": "tool_calls"}
    if behaviour.texts is None:
        text = author(asked, choice)
    else:
        text = behaviour.texts[min(choice, len(behaviour.texts) - 1)]
    if behaviour.kind == "cut":  # in the middle of what the code block holds
        start = text.find("```") + 3
        return {"content": text[: start + len(text[start:]) // 2], "finish_reason": "length"}
    return message_in_form(text, body=asked.body, finish="stop", is_honoured=behaviour.knows_forms)


def usage_of(asked: Asked, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return tokens: a quarter of the characters; half of the prompt's were cached."""
    prompt = len(asked.prompt) // CHARACTERS_OF_A_TOKEN
    written = sum(
        len(message.get("content") or message.get("reasoning_content") or "")
        + sum(len(call["function"]["arguments"]) for call in message.get("tool_calls", ()))
        for message in messages
    )
    completion = written // CHARACTERS_OF_A_TOKEN
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": prompt // 2},
    }


def whole_body(asked: Asked, behaviour: Behaviour, author: Author) -> dict[str, Any]:
    """Return the body of an answer that is not streamed."""
    messages = [] if behaviour.kind == "no_choices" else messages_of(asked, behaviour, author)
    body: dict[str, Any] = {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion",
        "created": 0,
        "model": asked.body.get("model"),
        "choices": [
            {
                "index": index,
                "message": {"role": "assistant", **_without_finish(message)},
                "finish_reason": message["finish_reason"],
                **token_fields(message.get("content") or "", body=asked.body),
            }
            for index, message in enumerate(messages)
        ],
    }
    if asked.body.get("return_token_ids"):
        body["prompt_token_ids"] = list(range(len(asked.prompt) // CHARACTERS_OF_A_TOKEN))
    if behaviour.usage:
        body["usage"] = usage_of(asked, messages)
    return body


def events(asked: Asked, behaviour: Behaviour, author: Author) -> Iterator[str]:
    """Yield the data of a stream's events; choices take turns."""
    messages = [] if behaviour.kind == "no_choices" else messages_of(asked, behaviour, author)
    for index, message in enumerate(messages):
        yield _chunk(asked, index, {"role": "assistant", "content": ""})
        others = {key: value for key, value in message.items() if key != "content"}
        if len(others) > 1:
            yield _chunk(asked, index, _without_finish(others))
    texts = [message["content"] or "" for message in messages]
    for start in range(0, max(map(len, texts), default=0), PIECE_CHARACTERS):
        for index, text in enumerate(texts):
            if piece := text[start : start + PIECE_CHARACTERS]:
                yield _chunk(asked, index, {"content": piece})
    for index, message in enumerate(messages):
        yield _chunk(asked, index, {}, finish=message["finish_reason"])
    options = asked.body.get("stream_options") or {}
    if behaviour.usage and options.get("include_usage"):
        usage = usage_of(asked, messages)
        yield json.dumps({"object": "chat.completion.chunk", "choices": [], "usage": usage})
    yield "[DONE]"


def text_event(asked: Asked, text: str) -> str:
    """Return the data of an event with a piece of the first choice."""
    return _chunk(asked, 0, {"content": text})


def _chunk(asked: Asked, index: int, delta: dict[str, Any], *, finish: str | None = None) -> str:
    return json.dumps(
        {
            "id": f"chatcmpl-{asked.number}",
            "object": "chat.completion.chunk",
            "model": asked.body.get("model"),
            "choices": [{"index": index, "delta": delta, "finish_reason": finish}],
        }
    )


def _call(call: str | tuple[str, str]) -> tuple[str, str]:
    return (call, "{}") if isinstance(call, str) else call


def _without_finish(message: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != "finish_reason"}
