"""Probes of what models are asked with: the endpoint, the environment of vLLM, and CUTLASS.

The environment configures an endpoint for every run: OPENAI_BASE_URL, or the key of OPENAI_API_KEY.
A key is sent and never shown.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from kopt.actors.cutlass.find import PACKAGE, packaged_checkout
from kopt.actors.programmers.openai_access import URL_VARIABLE, Access, access_of
from kopt.actors.programmers.openai_config import OpenAIConfig
from kopt.actors.programmers.vllm_ahead import PYTHON_VARIABLE, find_python
from kopt.actors.programmers.vllm_config import VllmConfig
from kopt.cli.probe import MAX_SHOWN, Probe
from kopt.errors import ConfigError

ENDPOINT_TIMEOUT_S = 5.0
MAX_LISTING_BYTES = 4 << 20
VLLM_FOLDER = ".venv-vllm"
"""That scripts/vllm_env.sh makes by default."""
MAX_NAMES = 3
"""Models that are named; the rest is a count."""


def model_probes() -> list[Probe]:
    """Look for the endpoint and the vLLM that the environment names, and for CUTLASS."""
    return [_endpoint(os.environ), _vllm(os.environ), _cutlass()]


def _endpoint(environment: Mapping[str, str]) -> Probe:
    config = OpenAIConfig()
    if not environment.get(URL_VARIABLE) and not environment.get(config.api_key_env):
        return Probe(
            name="endpoint",
            ok=False,
            found=f"neither {URL_VARIABLE} nor {config.api_key_env} is set: no model is asked",
            fix="set one, or name it by programmer.base_url; the rewriter needs neither",
        )
    try:
        access = access_of(config, environment)
    except ConfigError as error:
        fix = f"set {URL_VARIABLE} and {config.api_key_env}, or unset both"
        return Probe(name="endpoint", ok=False, found=_short(str(error)), fix=fix)
    return _listed(access)


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


def _vllm(environment: Mapping[str, str]) -> Probe:
    """Look for the servers' environment: the one that is named, or the script's in this folder."""
    here = Path(VLLM_FOLDER) / "bin" / "python"
    if not environment.get(PYTHON_VARIABLE) and here.is_file():
        environment = {**environment, PYTHON_VARIABLE: str(here)}
    try:
        python = find_python(VllmConfig(), environment)
    except ConfigError as error:
        why, _, _ = str(error).partition("; ")
        return Probe(
            name="vLLM environment",
            ok=False,
            found=_short(why.partition(": ")[2]),
            fix=f"scripts/vllm_env.sh cuda, then programmer.vllm.python or {PYTHON_VARIABLE}",
        )
    return Probe(name="vLLM environment", ok=True, found=str(python))


def _cutlass() -> Probe:
    found = packaged_checkout()
    if found is not None:
        return Probe(name="CUTLASS headers", ok=True, found=found.origin)
    return Probe(
        name="CUTLASS headers",
        ok=False,
        found="not found: a model that writes for a GPU cannot look its source up",
        fix=f"pip install {PACKAGE}, or name a checkout by programmer.tools.cutlass",
    )
