"""Access to an endpoint: its URL, its key, its headers. Light: the client itself is elsewhere.

Secrets are read from the environment here and nowhere else. They go into headers of requests;
whatever text of an endpoint is shown or kept goes through `Access.redact` first.
"""

from __future__ import annotations

import ipaddress
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic_core import PydanticCustomError

from kopt.actors.programmers.openai_config import OpenAIConfig, endpoint_url
from kopt.errors import ConfigError

VENDOR_URL = "https://api.openai.com/v1"
URL_VARIABLE = "OPENAI_BASE_URL"
MIN_SECRET = 6
"""Characters of the shortest secret that is looked for in texts: `x` is no secret, but a word."""
_LOCAL_NAMES = ("localhost", "local", "lan", "internal", "home", "intranet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where requests go, and with what credentials."""

    url: str
    """Base URL, without a slash at its end."""
    is_local: bool
    """Whether the endpoint is on this host or in a private network."""
    key_variable: str
    """Of the environment."""
    key: str = field(repr=False)
    """Empty where there is none."""
    headers: Mapping[str, str] = field(repr=False)
    """Sent with each request, variables filled in."""
    secrets: tuple[str, ...] = field(repr=False)
    """What no text may hold, the longest first."""

    def redact(self, text: str) -> str:
        """Return the text without the secrets that are sent to the endpoint."""
        for secret in self.secrets:
            text = text.replace(secret, "[secret]")
        return text


def access_of(config: OpenAIConfig, environment: Mapping[str, str]) -> Access:
    """Return the access that a section and the environment give; nothing is sent.

    Args:
        config: the programmer's section.
        environment: variables, as of this process.

    Raises:
        ConfigError: a variable that is needed is not set, or does not hold what it should.
    """
    url = _base_url(config, environment)
    key = environment.get(config.api_key_env, "").strip()
    if not _is_plain(key):
        raise ConfigError(
            f"conf programmer.api_key_env: {config.api_key_env} holds what no key holds (expected "
            "one line of printable ASCII)"
        )
    headers = _headers(config, environment)
    is_local = _is_local(urlsplit(url).hostname or "")
    if not key and not is_local and "authorization" not in map(str.lower, headers):
        raise ConfigError(
            f"conf programmer.api_key_env: {url} needs a key: set {config.api_key_env} (any word "
            "will do where an endpoint asks for none)"
        )
    named = {
        name
        for value in config.headers.values()
        for name in string.Template(value).get_identifiers()
    }
    secrets = {key, *(environment[name].strip() for name in named)}
    return Access(
        url=url,
        is_local=is_local,
        key_variable=config.api_key_env,
        key=key,
        headers=headers,
        secrets=tuple(
            sorted((each for each in secrets if len(each) >= MIN_SECRET), key=len, reverse=True)
        ),
    )


def _base_url(config: OpenAIConfig, environment: Mapping[str, str]) -> str:
    if config.base_url is not None:
        return config.base_url
    stated = environment.get(URL_VARIABLE, "").strip()
    if not stated:
        return VENDOR_URL
    try:
        return endpoint_url(stated)
    except (ValueError, PydanticCustomError) as error:
        raise ConfigError(f"{URL_VARIABLE}: {error}") from None


def _headers(config: OpenAIConfig, environment: Mapping[str, str]) -> dict[str, str]:
    headers = {}
    for name, value in config.headers.items():
        try:
            filled = string.Template(value).substitute(environment).strip()
        except KeyError as error:
            raise ConfigError(
                f"conf programmer.headers.{name}: {error.args[0]} is not set in the environment"
            ) from None
        except ValueError:
            raise ConfigError(
                f"conf programmer.headers.{name}: expected $NAME of an environment variable; $$ "
                "stands for a dollar"
            ) from None
        if not _is_plain(filled):
            raise ConfigError(
                f"conf programmer.headers.{name}: expected one line of printable ASCII"
            )
        headers[name] = filled
    return headers


def _is_plain(text: str) -> bool:
    return text.isascii() and (not text or text.isprintable())


def _is_local(host: str) -> bool:
    """Whether a host is this one, or one of a private network: such endpoints ask for no key."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.rpartition(".")[2] in _LOCAL_NAMES
    return address.is_private or address.is_loopback or address.is_link_local
