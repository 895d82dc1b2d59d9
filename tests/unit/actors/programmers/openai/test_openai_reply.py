"""Bodies and streams, read without a network: whatever comes is a choice or a counted fault."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kopt.actors.programmers.openai.reply import Reply, model_names, reply_from_body
from kopt.actors.programmers.openai.stream import read_stream
from kopt.actors.programmers.openai.trouble import Trouble

MAX_BYTES = 1_000


def read(body: object, *, cut: bool = False, num_choices: int = 2) -> Reply | Trouble:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return reply_from_body(data, cut=cut, num_choices=num_choices, max_answer_bytes=MAX_BYTES)


def stream(*pieces: bytes, num_choices: int = 1) -> Reply | Trouble:
    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return asyncio.run(read_stream(chunks(), num_choices=num_choices, max_answer_bytes=MAX_BYTES))


def event(
    content: str | None = None, *, index: int = 0, finish: str | None = None, **more
) -> bytes:
    delta = {"content": content, **more}
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def message(content: object, finish: str = "stop", **more: object) -> dict[str, object]:
    return {"choices": [{"message": {"content": content, **more}, "finish_reason": finish}]}


def test_choices_come_in_the_order_of_their_index():
    body = {
        "choices": [
            {"index": 1, "message": {"content": "b"}, "finish_reason": "length"},
            {"index": 0, "message": {"content": "a"}, "finish_reason": "stop"},
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 4,
            "prompt_tokens_details": {"cached_tokens": 6},
        },
    }
    reply = read(body)
    assert [(each.text, each.finish, each.fault) for each in reply.choices] == [
        ("a", "stop", ""),
        ("b", "length", ""),
    ]
    assert (reply.tokens.prompt, reply.tokens.cached, reply.tokens.completion) == (10, 6, 4)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", "the body is empty"),
        (b"  \n", "the body is empty"),
        (b'{"choices": [', "the body is broken JSON"),
        (b"[" * 100_000, "the body is broken JSON"),
        (b"<html><title>Oops</title>", "the body is not JSON but an HTML page, “Oops”"),
        (b"busy, come back later", "the body is not JSON but busy, come back later"),
        (b"\xff\xfe\x00", "the body is not JSON"),
        (b"3", "the body is not a JSON object"),
        ({"choices": []}, "the body holds no choices"),
        ({"choices": None}, "the body holds no choices"),
        ({"choices": "text"}, "the body holds no choices"),
        ({}, "the body holds no choices"),
        ({"choices": [None]}, "the choice is not a JSON object"),
        ({"choices": [{}]}, "an empty answer"),
        ({"choices": [{"message": 3}]}, "an empty answer"),
        (message(None), "an empty answer"),
        (message(" \n"), "an empty answer"),
        (message(None, "length"), "an empty answer: cut off at the token limit"),
        (message({"text": "x"}), "an empty answer"),
        (message(None, refusal="I cannot."), "the model refused: I cannot."),
        (message("", "content_filter"), "held back by the server's content filter"),
        (
            message(None, tool_calls=[{"function": {"name": "run"}}, 3]),
            "tool calls instead of text: run, ?",
        ),
        (message(None, reasoning_content="hm" * 50), "reasoning alone (100 characters), no answer"),
        (message(None, reasoning="hm"), "reasoning alone (2 characters), no answer"),
        (message("x" * 1_001), "cut off after 1,000 bytes (programmer.max_answer_bytes)"),
    ],
)
def test_a_body_that_is_no_answer_is_one_counted_fault(body, fault):
    reply = read(body)
    assert isinstance(reply, Reply)
    assert reply.choices[0].fault.startswith(fault)


def test_a_long_answer_is_cut_between_characters():
    reply = read(message("ü" * 600))
    assert reply.choices[0].text == "ü" * 500
    assert reply.choices[0].finish == "length"


def test_text_parts_are_joined_and_half_a_surrogate_pair_is_replaced():
    parts = [{"type": "text", "text": "a\ud800"}, {"type": "image"}, {"type": "text", "text": "b"}]
    assert read(message(parts)).choices[0].text == "a?b"


def test_more_choices_than_asked_for_are_left_out():
    body = {"choices": [{"message": {"content": str(number)}} for number in range(5)]}
    assert [each.text for each in read(body, num_choices=3).choices] == ["0", "1", "2"]


def test_an_error_under_status_200_is_a_trouble():
    assert isinstance(read({"error": {"message": "busy", "code": 503}}), Trouble)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, None),
        ({}, None),
        ({"prompt_tokens": None}, None),
        ({"prompt_tokens": "many", "completion_tokens": True}, None),
        ({"prompt_tokens": 3.0}, (3, 0, 0)),
        ({"prompt_tokens": -1, "completion_tokens": 2}, (0, 0, 2)),
        ({"prompt_tokens": 5, "prompt_cache_hit_tokens": 2}, (5, 2, 0)),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 50}}, (5, 5, 0)),
        ({"prompt_tokens": 5, "prompt_tokens_details": None}, (5, 0, 0)),
    ],
)
def test_only_counts_are_counted(usage, tokens):
    found = read({**message("x"), "usage": usage}).tokens
    assert (found and (found.prompt, found.cached, found.completion)) == tokens


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "delta", "content", "index", "usage", "error", "refusal",
                 "finish_reason", "tool_calls", "function", "name", "prompt_tokens", "code"]
            ),
            inner,
            max_size=4,
        ),
        max_leaves=12,
    )
)  # fmt: skip
def test_no_json_value_raises(value):
    body = {"choices": value} if not isinstance(value, dict) else value
    assert isinstance(read(body), Reply | Trouble)
    assert isinstance(stream(b"data: " + json.dumps(body).encode() + b"\n\n"), Reply | Trouble)
    model_names(json.dumps(body).encode())


def test_a_stream_is_put_together_by_choice():
    usage = json.dumps({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    reply = stream(
        b": a comment\n\n",
        event("a", index=0) + event("x", index=1),
        event("b", index=0, finish="stop"),
        event("y", index=1, finish="length"),
        b"data: " + usage.encode() + b"\n\n",
        b"data: [DONE]\n\n",
        b"data: ignored",
        num_choices=2,
    )
    assert [(each.text, each.finish) for each in reply.choices] == [
        ("ab", "stop"),
        ("xy", "length"),
    ]
    assert reply.tokens.prompt == 7
    assert reply.is_whole


def test_a_stream_may_be_cut_between_any_two_bytes():
    whole = (event("grüße") + event("!", finish="stop")).replace(
        b"\n", b"\r\n"
    ) + b"data: [DONE]\n\n"
    for step in (1, 2, 3, 7):
        pieces = [whole[start : start + step] for start in range(0, len(whole), step)]
        assert stream(*pieces).choices[0].text == "grüße!"


@pytest.mark.parametrize(
    ("pieces", "fault"),
    [
        ([], "the stream ended early"),
        ([b"data: [DONE]\n\n"], "the stream holds no choices"),
        ([event("a")], "the stream ended before the answer did"),
        ([event("a"), b"data: {oops\n\n"], "an event of the stream is broken JSON"),
        ([event("a"), b"data: 3\n\n"], "an event of the stream is not a JSON object"),
        ([event(None, finish="stop", refusal="No.")], "the model refused: No."),
        ([event(None, reasoning_content="hm", finish="stop")], "reasoning alone (2 characters)"),
    ],
)
def test_a_stream_that_is_no_answer_is_one_counted_fault(pieces, fault):
    assert stream(*pieces).choices[0].fault.startswith(fault)


def test_reasoning_that_is_served_apart_is_kept_as_far_as_an_answer_may_be_long():
    whole = read(message("a", reasoning_content="hm" * MAX_BYTES))
    assert isinstance(whole, Reply)
    assert (whole.choices[0].text, whole.choices[0].reasoning) == ("a", "hm" * (MAX_BYTES // 2))
    thinking = event(None, reasoning="h"), event(None, reasoning="m"), event("a", finish="stop")
    pieces = stream(*thinking)
    assert (pieces.choices[0].text, pieces.choices[0].reasoning) == ("a", "hm")


def test_what_is_finished_counts_although_the_stream_breaks():
    reply = stream(event("a", finish="stop"), event("x", index=1), b"data: oops\n\n", num_choices=2)
    assert [bool(each.fault) for each in reply.choices] == [False, True]


def test_an_endless_choice_is_cut_once_the_others_are_finished():
    taken: list[int] = []

    async def chunks() -> AsyncIterator[bytes]:
        yield event("done", index=0, finish="stop")
        number = 0
        while True:
            taken.append(number := number + 1)
            yield event("x" * 100, index=1)

    reply = asyncio.run(read_stream(chunks(), num_choices=2, max_answer_bytes=MAX_BYTES))
    assert [(len(each.text), each.finish) for each in reply.choices] == [
        (4, "stop"),
        (1_000, "length"),
    ]
    assert len(taken) == 11


@pytest.mark.parametrize("piece", [b"x" * 1_000, b": ping\n\n" * 100, b"data: 1\n" * 100])
def test_a_stream_that_says_nothing_for_ever_is_cut(piece):
    async def chunks() -> AsyncIterator[bytes]:
        while True:
            yield piece

    reply = asyncio.run(read_stream(chunks(), num_choices=1, max_answer_bytes=MAX_BYTES))
    assert reply.choices[0].fault == "cut off: an endless stream"


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b'{"data": [{"id": "a"}, {"id": "b"}]}', ("a", "b")),
        (b'[{"id": "a"}, 3, {"id": null}]', ("a",)),
        (b'{"data": null}', ()),
        (b"<html>", ()),
    ],
)
def test_the_names_of_a_list_of_models(data, names):
    assert model_names(data) == names
