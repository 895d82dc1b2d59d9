"""A target with the interfaces of its languages' packages, as they are installed on this host.

Read once for each version of a package, by a child process, and kept in the node's cache. A package
that is absent, or cannot be imported, has no interface: prompts say nothing of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kopt.actors.apis.pages import PAGES, installed_version
from kopt.actors.cache.kinds import open_store
from kopt.api import Api
from kopt.candidate import Language
from kopt.identity import canonical_json, text_id
from kopt.ports import Target

FORM = 1
"""Of what is kept; a change of what the reader gives counts it up."""
READ_S = 120.0
"""A package that takes longer to import is left out."""
_NO_DEVICE = {"CUDA_VISIBLE_DEVICES": "", "TRITON_INTERPRET": "0"}


def with_apis(target: Target, *, cache_dir: Path, warn: Callable[[str], None]) -> Target:
    """Return the target with the interface of each of its languages that has one here.

    Args:
        target: that candidates are written for.
        cache_dir: kopt's cache on this node; one that cannot be written costs time and no more.
        warn: is told of a package that is installed and cannot be read.
    """
    apis = [_api(language, cache_dir=cache_dir, warn=warn) for language in target.languages]
    return replace(target, apis=tuple(each for each in apis if each is not None))


def _api(language: Language, *, cache_dir: Path, warn: Callable[[str], None]) -> Api | None:
    version = installed_version(language)
    if version is None:
        return None
    page = PAGES[language]
    asked = [FORM, language, version, page.first, list(sys.version_info[:2])]
    key = text_id(canonical_json(asked))
    store = open_store(cache_dir, "api")
    kept = store.get(key)
    text = _read(language, warn=warn) if kept is None else kept.decode()
    fields = _fields(text)
    if fields is None:
        return None
    if kept is None:
        with suppress(OSError):
            store.put(key, text.encode())
    return Api(
        language=language,
        package=page.package,
        version=version,
        signatures=tuple(fields["signatures"]),
        names=tuple(fields["names"]),
    )


def _read(language: Language, *, warn: Callable[[str], None]) -> str:
    """Return what the reader prints last; empty where it fails."""
    command: Sequence[str] = (sys.executable, "-m", "kopt.actors.apis.reader", language)
    why = ""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=READ_S,
            env={**os.environ, **_NO_DEVICE},
        )
        if done.returncode == 0:
            return done.stdout.strip().rpartition("\n")[2]
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    except subprocess.TimeoutExpired:
        why = f"not imported within {READ_S:g} s"
    except OSError as error:
        why = str(error)
    warn(f"prompts have no signatures of {PAGES[language].package}, it cannot be read: {why}")
    return ""


def _fields(text: str) -> dict[str, list[str]] | None:
    """Return what a reader printed, or what was kept of it; None where it is not that."""
    try:
        found = json.loads(text)
        fields = {name: [str(each) for each in found[name]] for name in ("signatures", "names")}
    except (ValueError, TypeError, KeyError):
        return None
    return fields if fields["signatures"] else None
