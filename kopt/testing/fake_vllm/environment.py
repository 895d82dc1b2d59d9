"""A folder with an interpreter and a package `vllm`, whose API server is the scripted server.

`programmer.vllm.python` takes the interpreter, so that everything of a pool but the model is real:
processes, ports, keys, logs, restarts.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

SETTINGS = "settings.json"
REQUESTS = "requests.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeVllm:
    """Makes the folder; what its servers do is set here and may be changed between starts."""

    folder: Path
    author: str = "reference"
    """Who writes the answers (kopt.testing.openai_server.authors)."""
    delay_s: float = 0.0
    """Before an answer."""
    unhealthy: bool = False
    """Never say that it is well."""
    last_words: str = ""
    """End at once, with these."""
    exit_code: int = 1

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.folder / "bin" / "python"

    @property
    def model(self) -> Path:
        """A model's folder, as far as anyone looks."""
        return self.folder / "model"

    def make(self) -> FakeVllm:
        """Write the folder, or its settings anew."""
        package = self.folder / "lib" / "vllm" / "entrypoints" / "openai"
        package.mkdir(parents=True, exist_ok=True)
        for each in (package, package.parent, package.parent.parent):
            (each / "__init__.py").touch()
        (package / "api_server.py").write_text(
            f"from kopt.testing.fake_vllm.api_server import main\n\nmain({str(self.folder)!r})\n",
            encoding="utf-8",
        )
        self.python.parent.mkdir(exist_ok=True)
        self.python.write_text(
            f'#!/bin/sh\nPYTHONPATH="{self.folder / "lib"}" exec "{sys.executable}" "$@"\n',
            encoding="utf-8",
        )
        self.python.chmod(0o755)
        self.model.mkdir(exist_ok=True)
        (self.model / "config.json").write_text("{}", encoding="utf-8")
        settings = {name: value for name, value in asdict(self).items() if name != "folder"}
        (self.folder / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")
        return self

    def requests(self) -> list[dict[str, object]]:
        """Return the requests for completions that its servers began, in order.

        `pid` of the server, the `gpus` that it sees, and `body`.
        """
        path = self.folder / REQUESTS
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
