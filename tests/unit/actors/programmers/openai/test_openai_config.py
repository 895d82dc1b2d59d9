import pytest

from kopt.actors.programmers.openai_access import VENDOR_URL, access_of
from kopt.actors.programmers.openai_config import OpenAIConfig
from kopt.cli.ahead import look_ahead
from kopt.config import load
from kopt.errors import ConfigError

SECRET = "sk-very-secret-9f3a"


def fault_of(**programmer: object) -> str:
    with pytest.raises(ConfigError) as caught:
        load({"problem": "a", "programmer": {"kind": "openai", **programmer}})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def access_fault(environment: dict[str, str] | None = None, **config: object) -> str:
    with pytest.raises(ConfigError) as caught:
        access_of(OpenAIConfig(**config), environment or {})
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"api_key_env": SECRET}, "expected the name of an environment variable, not a key"),
        ({"headers": {"X-Api-Key": SECRET}}, "expected $NAME of an environment variable"),
        ({"headers": {"Authorization": f"Bearer {SECRET}"}}, "as the value of Authorization"),
        ({"base_url": f"http://me:{SECRET}@host/v1"}, "without user and password"),
        ({"base_url": f"http://me:{SECRET}@host:port/v1"}, "without user and password"),
    ],
)
def test_a_secret_in_the_configuration_is_refused_and_not_repeated(section, words):
    fault = fault_of(**section)
    assert words in fault
    assert SECRET not in fault


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"base_url": "localhost:8000/v1"}, "expected a URL such as http://host:8000/v1"),
        ({"base_url": "ftp://host/v1"}, "expected a URL such as"),
        ({"base_url": "http://host:port/v1"}, "expected a URL such as"),
        ({"base_url": "http://h/v1/chat/completions"}, "the part before /chat/completions"),
        ({"extra_body": {"n": 3}}, "n is set by programmer.completions"),
        ({"extra_body": {"max_completion_tokens": 3}}, "programmer.token_limit_key"),
        ({"temperature": 3}, "less than or equal to 2"),
        ({"model": ""}, "at least 1 character"),
    ],
)
def test_a_bad_section_is_one_line(section, words):
    assert words in fault_of(**section)


def test_the_slash_at_the_end_of_a_url_does_not_matter():
    assert OpenAIConfig(base_url="http://h:1/v1/").base_url == "http://h:1/v1"


def test_the_vendor_needs_a_key_and_the_line_says_which_variable():
    assert access_fault() == (
        f"conf programmer.api_key_env: {VENDOR_URL} needs a key: set OPENAI_API_KEY (any word "
        "will do where an endpoint asks for none)"
    )
    assert "set MY_KEY" in access_fault(api_key_env="MY_KEY", base_url="https://openrouter.ai/v1")


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8000/v1",
        "http://127.0.0.1:1/v1",
        "http://[::1]:1/v1",
        "http://10.1.2.3/v1",
        "http://gpu-7:8000/v1",
        "https://llm.internal/v1",
    ],
)
def test_an_endpoint_of_this_host_or_network_needs_none(url):
    access = access_of(OpenAIConfig(base_url=url), {})
    assert (access.url, access.key, access.is_local) == (url, "", True)


def test_a_key_in_a_header_will_do():
    config = OpenAIConfig(
        base_url="https://api.example.com/v1", headers={"Authorization": "Bearer $TOKEN"}
    )
    access = access_of(config, {"TOKEN": SECRET})
    assert access.headers == {"Authorization": f"Bearer {SECRET}"}
    assert access.redact(f"bad token {SECRET}!") == "bad token [secret]!"
    assert SECRET not in repr(access)


def test_the_url_may_come_from_the_environment():
    access = access_of(OpenAIConfig(), {"OPENAI_BASE_URL": "http://h:1/v1/"})
    assert access.url == "http://h:1/v1"
    assert "OPENAI_BASE_URL: expected a URL" in access_fault({"OPENAI_BASE_URL": "h:1"})
    secret = access_fault({"OPENAI_BASE_URL": f"http://me:{SECRET}@h/v1"})
    assert SECRET not in secret


def test_a_key_keeps_no_line_break_of_the_file_it_came_from():
    access = access_of(OpenAIConfig(), {"OPENAI_API_KEY": f"{SECRET}\n"})
    assert access.key == SECRET


@pytest.mark.parametrize("key", ["two\nlines", "schlüssel"])
def test_a_key_that_no_header_takes_is_refused_and_not_repeated(key):
    fault = access_fault({"OPENAI_API_KEY": key})
    assert "OPENAI_API_KEY holds what no key holds" in fault
    assert key not in fault


def test_a_header_whose_variable_is_not_set_is_one_line():
    fault = access_fault(base_url="http://h/v1", headers={"X-Key": "$NOT_SET"})
    assert fault == "conf programmer.headers.X-Key: NOT_SET is not set in the environment"
    assert "$$ stands for a dollar" in access_fault(
        base_url="http://h/v1", headers={"X-Note": "5 $ a day"}
    )


def test_a_limit_on_money_needs_prices():
    openai = {"kind": "openai", "base_url": "http://localhost:1/v1"}
    limits = {"cost_usd": 1.0}
    with pytest.raises(ConfigError, match="without prices it is never reached"):
        look_ahead(load({"problem": "a", "programmer": openai, "limits": limits}), [])
    price = {"completion_usd_per_mtok": 0.6}
    priced = {**openai, "price": price}
    assert look_ahead(load({"problem": "a", "programmer": priced, "limits": limits}), []) == {}
