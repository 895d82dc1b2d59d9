"""A client of the reward service, for trainers: waits out 429, asks again for what is pending.

Needs the standard library alone. A request that fails on the way is sent again: judging is
idempotent.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any

from kopt.errors import ConfigError

Judged = dict[str, Any]
"""A `Judgement` (kopt.actors.serve.messages) as JSON."""
BATCH = 128
"""Completions of one request."""
MAX_PAUSE_S = 30.0
MAX_FAULTS = 6
"""Requests in a row that fail on the way."""


class RewardClient:
    """Asks a reward service. Usable from several threads."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8717",
        *,
        timeout_s: float = 3_600.0,
        sleep: Callable[[float], None] = time.sleep,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take where the service is.

        Args:
            url: of the service.
            timeout_s: for one call of `judge`; what has no verdict by then stays pending.
            sleep: waits some seconds; tests put their own, as for the clock.
            monotonic_s: seconds that never run backwards.
        """
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s
        self._sleep = sleep
        self._monotonic_s = monotonic_s

    def judge(self, items: Sequence[dict[str, Any]]) -> list[Judged]:
        """Judge completions; return an answer for each, in order.

        Args:
            items: objects with `completion`, and `problem` or `problem_source`.

        Raises:
            ConfigError: the service cannot be reached, or refuses the request.
        """
        give_up_s = self._monotonic_s() + self._timeout_s
        answers: list[Judged] = [{"status": "pending", "reward": None} for _ in items]
        open_ = list(range(len(items)))
        while open_:
            for start in range(0, len(open_), BATCH):
                part = open_[start : start + BATCH]
                left_s = max(0.0, give_up_s - self._monotonic_s())
                found = self._post([items[place] for place in part], left_s=left_s)
                for place, answer in zip(part, found, strict=False):
                    answers[place] = answer
            open_ = [place for place in open_ if answers[place]["status"] == "pending"]
            if self._monotonic_s() >= give_up_s:
                break
        return answers

    def health(self) -> dict[str, Any]:
        """Return how busy the service is.

        Raises:
            ConfigError: it cannot be reached.
        """
        return self._sent(urllib.request.Request(f"{self._url}/health"), left_s=10.0)

    def _post(self, items: list[dict[str, Any]], *, left_s: float) -> list[Judged]:
        body = json.dumps({"items": items, "wait_s": min(30.0, left_s)}).encode()
        request = urllib.request.Request(
            f"{self._url}/v1/judgements", data=body, headers={"Content-Type": "application/json"}
        )
        found: list[Judged] = self._sent(request, left_s=left_s)["items"]
        return found

    def _sent(self, request: urllib.request.Request, *, left_s: float) -> dict[str, Any]:
        give_up_s = self._monotonic_s() + left_s
        faults = 0
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60.0 + left_s) as reply:
                    value: dict[str, Any] = json.load(reply)
                    return value
            except urllib.error.HTTPError as error:
                if error.code != 429 or self._monotonic_s() >= give_up_s:
                    said = error.read(2_000).decode("utf-8", errors="replace")
                    raise ConfigError(f"{self._url}: answer {error.code}: {said[:300]}") from error
                pause_s = float(error.headers.get("Retry-After") or 1.0)
            except (OSError, ValueError) as error:
                faults += 1
                if faults >= MAX_FAULTS:
                    raise ConfigError(
                        f"{self._url}: no reward service answers there ({error}); start one with "
                        "`kopt serve`"
                    ) from error
                pause_s = 0.2 * 2.0**faults
            self._sleep(min(pause_s, MAX_PAUSE_S))
