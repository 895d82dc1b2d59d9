"""What `python -m vllm.entrypoints.openai.api_server` runs in the made-up environment."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from kopt.testing.fake_vllm.environment import REQUESTS, SETTINGS
from kopt.testing.openai_server.behaviour import Asked, Behaviour
from kopt.testing.openai_server.known_authors import AUTHORS
from kopt.testing.openai_server.server import ScriptedServer


def main(folder: str) -> None:
    """Serve until it is ended, as the settings in the folder say."""
    parser = argparse.ArgumentParser()
    for name in ("--model", "--host", "--port", "--served-model-name"):
        parser.add_argument(name, required=True)
    options, _ = parser.parse_known_args()
    settings = json.loads((Path(folder) / SETTINGS).read_text(encoding="utf-8"))
    if settings["last_words"]:
        sys.stderr.write(f"(APIServer pid={os.getpid()}) {settings['last_words']}\n")
        sys.exit(settings["exit_code"])
    # The engine: a process that does not end by itself when this one is killed.
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)  # fake engine"])
    asyncio.run(_serve(Path(folder), options, settings))


async def _serve(folder: Path, options: argparse.Namespace, settings: dict[str, object]) -> None:
    def script(asked: Asked) -> Behaviour:
        with (folder / REQUESTS).open("a", encoding="utf-8") as log:
            gpus = os.environ.get("CUDA_VISIBLE_DEVICES")
            record = {"pid": os.getpid(), "gpus": gpus, "body": dict(asked.body)}
            log.write(json.dumps(record) + "\n")
        # The first request is the pool's own.
        return Behaviour(delay_s=float(str(settings["delay_s"])) if asked.number else 0.0)

    server = ScriptedServer(
        script,
        author=AUTHORS[str(settings["author"])],
        models=(options.served_model_name,),
        key=os.environ["VLLM_API_KEY"],
        is_well=not settings["unhealthy"],
    )
    await server.start(port=int(options.port))
    await asyncio.Event().wait()
