"""Probes of what models are asked with: the endpoint, where one is configured, and CUTLASS.

The environment configures an endpoint for every run: OPENAI_BASE_URL, or the key of OPENAI_API_KEY.
Where neither is set there is nothing to look for, and no row. A key is sent and never shown.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping

from kopt.actors.cutlass.find import PACKAGE, packaged_checkout
from kopt.actors.programmers.openai_access import URL_VARIABLE, Access, access_of
from kopt.actors.programmers.openai_config import OpenAIConfig
from kopt.cli.probe import MAX_SHOWN, Probe
from kopt.errors import ConfigError

ENDPOINT_TIMEOUT_S = 5.0
MAX_LISTING_BYTES = 4 << 20
MAX_NAMES = 3
"""Models that are named; the rest is a count."""


def model_probes(*, device: str) -> list[Probe]:
    """Look for the endpoint that the environment names, and for CUTLASS where a GPU could use it.

    Args:
        device: of candidates, `cuda` or `cpu`.
    """
    return [*_endpoint(os.environ), *(_cutlass() if device == "cuda" else ())]


def _endpoint(environment: Mapping[str, str]) -> list[Probe]:
    config = OpenAIConfig()
    if not environment.get(URL_VARIABLE) and not environment.get(config.api_key_env):
        return []
    try:
        access = access_of(config, environment)
    except ConfigError as error:
        fix = f"set {URL_VARIABLE} and {config.api_key_env}, or unset both"
        return [Probe(name="endpoint", ok=False, found=_short(str(error)), fix=fix)]
    return [_listed(access)]


def _listed(access: Access) -> Probe:
    """Ask the endpoint which models it has, which costs nothing."""
    request = urllib.request.Request(f"{access.url}/models", headers=_headers(access))
    opener = urllib.request.build_opener(
        *((urllib.request.ProxyHandler({}),) if access.is_local else ())
    )
    fix = f"start it, or correct {URL_VARIABLE} or {access.key_variable}"
    try:
        with opener.open(request, timeout=ENDPOINT_TIMEOUT_S) as answer:
            listing = json.loads(answer.read(MAX_LISTING_BYTES))
        names = [str(each["id"]) for each in listing["data"]]
    except urllib.error.HTTPError as error:
        why = f"{access.url} answers {error.code} {error.reason}"
        return Probe(name="endpoint", ok=False, found=_shown(why, access), fix=fix)
    except (OSError, ValueError) as error:
        why = f"{access.url} does not answer: {getattr(error, 'reason', error)}"
        return Probe(name="endpoint", ok=False, found=_shown(why, access), fix=fix)
    except (KeyError, TypeError):
        why = f"{access.url} lists no models in OpenAI's form"
        return Probe(name="endpoint", ok=False, found=_shown(why, access), fix=fix)
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    listed = f"{', '.join(names[:MAX_NAMES])}{more}" if names else "no model"
    return Probe(name="endpoint", ok=True, found=_shown(f"{access.url} has {listed}", access))


def _headers(access: Access) -> dict[str, str]:
    authorization = {"Authorization": f"Bearer {access.key}"} if access.key else {}
    return {**authorization, **access.headers}


def _shown(text: str, access: Access) -> str:
    return _short(access.redact(text))


def _short(text: str) -> str:
    return " ".join(text.split())[:MAX_SHOWN]


def _cutlass() -> list[Probe]:
    found = packaged_checkout()
    if found is not None:
        return [Probe(name="CUTLASS headers", ok=True, found=found.origin)]
    return [
        Probe(
            name="CUTLASS headers",
            ok=False,
            found="not found: a model cannot look its source up",
            fix=f"pip install {PACKAGE}, or name a checkout by programmer.tools.cutlass",
        )
    ]
