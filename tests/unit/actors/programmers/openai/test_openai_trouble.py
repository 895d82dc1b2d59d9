"""What endpoints answer that do not answer; bodies as the servers of the market send them."""

import pytest

from kopt.actors.programmers.openai.trouble import embedded_trouble, retry_after_s, trouble_of

OVERFLOWS = [
    (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 8192 tokens. However, your "
                "messages resulted in 9000 tokens. Please reduce the length of the messages.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
    ),
    (400, {"message": "The decoder prompt (length 9000) is longer than the maximum model length"}),
    (
        400,
        {
            "object": "error",
            "message": "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's "
            "maximum context length is 2048 tokens and your request has 1000 input tokens.",
        },
    ),
    (
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
            }
        },
    ),
    (400, "The input (5000 tokens) is longer than the model's context length (2048 tokens)."),
    (400, {"error": {"message": "prompt is too long: 213462 tokens > 200000 maximum"}}),
    (400, {"error": {"message": "Input tokens exceed the configured limit of 272000 tokens."}}),
    (
        422,
        {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048."},
    ),
    (413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
    (429, {"error": {"message": "Request too large for gpt-x: Limit 30000, Requested 40000."}}),
]


@pytest.mark.parametrize(("status", "body"), OVERFLOWS)
def test_a_prompt_that_is_too_long_is_an_overflow(status, body):
    trouble = trouble_of(status, body)
    assert trouble.kind == "overflow"
    assert trouble.reason.startswith(f"{status}: ")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": {"message": "Incorrect API key provided"}}, "key"),
        (403, {"error": {"message": "Country not supported"}}, "key"),
        (402, {"error": {"message": "Insufficient credits"}}, "refused"),
        (429, {"error": {"message": "quota", "code": "insufficient_quota"}}, "refused"),
        (429, {"error": {"message": "Rate limit reached for requests"}}, "retry"),
        (408, None, "retry"),
        (409, "", "retry"),
        (500, "<html><title>Internal error</title></html>", "retry"),
        (503, {"error": {"message": "overloaded"}}, "retry"),
        (529, None, "retry"),
        (404, {"error": {"message": "The model `x` does not exist", "code": None}}, "no_model"),
        (404, {"error": {"code": "model_not_found", "message": "no"}}, "no_model"),
        (404, {"error": {"message": 'model "x" not found, try pulling it first'}}, "no_model"),
        (400, {"error": {"message": "x is not a valid model ID", "code": 400}}, "no_model"),
        (404, {"detail": "Not Found"}, "refused"),
        (
            400,
            {"error": {"message": "max_tokens must be positive", "param": "max_tokens"}},
            "refused",
        ),
        (422, {"detail": [{"loc": ["body", "seed"], "msg": "extra fields"}]}, "refused"),
        (400, [1, 2], "refused"),
        (418, b"\x00", "refused"),
    ],
)
def test_each_status_has_its_meaning(status, body, kind):
    trouble = trouble_of(status, body)
    assert trouble.kind == kind
    assert "\n" not in trouble.reason
    assert len(trouble.reason) < 500


@pytest.mark.parametrize(
    ("param", "message", "hint"),
    [
        ("seed", "Unrecognized request argument supplied: seed", "programmer.seeded=false"),
        ("n", "n > 1 is not supported", "programmer.completions=apart"),
        (
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model.",
            "programmer.token_limit_key=max_completion_tokens",
        ),
        ("temperature", "'temperature' does not support 0.2", "programmer.temperature=null"),
    ],
)
def test_a_parameter_that_is_not_taken_names_the_setting(param, message, hint):
    trouble = trouble_of(400, {"error": {"message": message, "param": param}})
    assert trouble.kind == "refused"
    assert hint in trouble.reason


def test_a_path_that_is_not_there_points_at_the_base_url():
    assert "expected a base URL" in trouble_of(404, "<html>nginx</html>").reason


def test_a_long_message_is_one_bounded_line():
    trouble = trouble_of(400, {"error": {"message": "no\n\x1b[31m " * 10_000}})
    assert len(trouble.reason) <= 310
    assert trouble.reason.isprintable()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-2"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        (
            {
                "retry-after": "Fri, 31 Dec 2027 23:59:59 GMT",
                "date": "Fri, 31 Dec 2027 23:59:49 GMT",
            },
            10.0,
        ),
        ({"retry-after": "Fri, 31 Dec 2027 23:59:59 GMT"}, None),
        ({"retry-after": "Fri, 31 Dec 2027 23:59:59 -0000", "date": "nonsense"}, None),
    ],
)
def test_the_wait_that_a_server_asks_for(headers, seconds):
    assert retry_after_s(headers) == seconds


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 429, "message": "slow down"}, "retry"),
        ({"code": "503", "message": "busy"}, "retry"),
        ({"type": "server_error", "message": "boom"}, "retry"),
        ({"message": "maximum context length is 10 tokens"}, "overflow"),
        ({"message": "no"}, "refused"),
        ("no", "refused"),
    ],
)
def test_an_error_under_status_200_means_what_it_says(error, kind):
    assert embedded_trouble({"error": error}).kind == kind
