"""A transcript: a scripted model finds a matrix instruction in CUTLASS's source by its tools.

Usage: python scripts/cutlass_transcript.py [cutlass=auto] [query="SM90 wgmma 64x128x16 …"] [--json]

Needs no GPU and no key: the model is a script behind a local endpoint, the tools and the source
are real. `cutlass` is a checkout, or `auto` for the package nvidia-cutlass. The exit status is 0
where an answer names an atom that it has read.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

from kopt.actors.programmers.openai import OpenAIProgrammer
from kopt.actors.programmers.openai_config import OpenAIConfig
from kopt.errors import ConfigError
from kopt.expansion import first_expansion
from kopt.ports import Answer, Target, WriteRequest
from kopt.problem import Problem
from kopt.testing.openai_server import ScriptedServer
from kopt.testing.openai_server.source_reader import SourceReader
from kopt.testing.small_workplace import small_workplace

TARGET = Target(device="cuda", name="NVIDIA H200", arch="sm_90", languages=("cuda",))


def main(arguments: list[str]) -> int:
    """Print the conversation."""
    given = dict(word.partition("=")[::2] for word in arguments if "=" in word)
    unknown = sorted(given.keys() - {"cutlass", "query"})
    if unknown:
        sys.stderr.write(f"unknown {unknown[0]}; there are: cutlass, query\n")
        return 2
    reader = SourceReader(query=given.get("query", SourceReader().query))
    try:
        answer, bodies = asyncio.run(_ask(reader, cutlass=given.get("cutlass", "auto")))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    (completion,) = answer.completions
    found = bool(answer.candidates) and "MMA_Atom<SM" in answer.candidates[0].source
    if "--json" in arguments:
        record = {"found": found, "tool_calls": list(completion.tool_calls)}
        sys.stdout.write(json.dumps(record | {"answer": completion.text}) + "\n")
    else:
        offered = ", ".join(each["function"]["name"] for each in bodies[0].get("tools", ()))
        sys.stdout.write(f"offered: {offered or 'nothing'}\n")
        for call in completion.tool_calls:
            sys.stdout.write(f"\n> {call['name']} {call['arguments']}\n{call['result']}\n")
        sys.stdout.write(f"\nanswer:\n{completion.text}\n")
    return 0 if found else 1


async def _ask(reader: SourceReader, *, cutlass: str) -> tuple[Answer, list[dict[str, Any]]]:
    source = files("kopt.data.problems.builtin").joinpath("softmax.py").read_text("utf-8")
    request = WriteRequest(
        problem=Problem(name="builtin/softmax", source=source),
        target=TARGET,
        search="builtin/softmax/arm/0",
        arm="arm",
        seed=0,
        expansion=first_expansion(seed=1),
        parent=None,
    )
    async with ScriptedServer(reader) as server:
        config = OpenAIConfig.model_validate(
            {"base_url": server.url, "tools": {"cutlass": cutlass}}
        )
        programmer = OpenAIProgrammer(config, small_workplace(Path(), warn=_say, device="cuda"))
        try:
            return await programmer.write(request), server.bodies
        finally:
            await programmer.close()


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
