"""The scripted server in a process of its own: started, asked for its counts, ended."""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType
from typing import Self
from urllib.request import ProxyHandler, build_opener

from kopt.testing.openai_server.served import Served

START_S = 30.0
STOP_S = 5.0


class ServerProcess:
    """`with ServerProcess(delay_s=1, errors=0.05) as server: server.url`."""

    def __init__(self, **options: object) -> None:
        """Take the command's options; see `kopt.testing.openai_server.__main__`."""
        self._words = [f"{key}={value}" for key, value in options.items()]
        self._process: subprocess.Popen[str] | None = None
        self.url = ""
        """Base URL, once started."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kopt.testing.openai_server", *self._words],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url.startswith("http"):
            self._end()
            raise RuntimeError("the scripted server did not start")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def pid(self) -> int:
        """Of the server's process."""
        assert self._process is not None
        return self._process.pid

    def served(self) -> list[Served]:
        """Return what has been served so far."""
        root = self.url.removesuffix("/v1")
        without_proxy = build_opener(ProxyHandler({}))
        with without_proxy.open(f"{root}/served", timeout=START_S) as response:
            return [Served(**each) for each in json.load(response)]

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None
