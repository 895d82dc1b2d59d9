"""Fakes of the Extractor port: lessons at once, or never."""

from __future__ import annotations

import asyncio

from kopt.memory.entry import MemoryEntry, entry_of
from kopt.ports import Completion, ExtractionAnswer, ExtractionRequest, Message, Usage


def lesson_of(request: ExtractionRequest) -> tuple[MemoryEntry, ...]:
    """Return one entry that names the iteration it is from."""
    return (entry_of("learnings", f"lesson of expansion {request.iteration.expansion}"),)


class InstantExtractor:
    """An Extractor that says `lesson_of` at once: 40 tokens read, 4 written, 0.125 USD."""

    def __init__(self) -> None:
        """Start without requests."""
        self.requests: list[ExtractionRequest] = []

    async def extract(self, request: ExtractionRequest) -> ExtractionAnswer:
        """Draw a lesson (the Extractor port)."""
        self.requests.append(request)
        return ExtractionAnswer(
            entries=lesson_of(request),
            messages=(Message("user", "learn"),),
            sampling={"seed": request.seed},
            completion=Completion(
                text="learned", usage=Usage(tokens_in=40, tokens_out=4, cost_usd=0.125)
            ),
        )


class SilentExtractor(InstantExtractor):
    """An Extractor that is asked and never answers."""

    async def extract(self, request: ExtractionRequest) -> ExtractionAnswer:
        """Wait until it is given up (the Extractor port)."""
        self.requests.append(request)
        await asyncio.Event().wait()
        raise AssertionError
