"""Bounds of the reward service. Imports pydantic and nothing heavier."""

from __future__ import annotations

from pydantic import Field

from kopt.section import Section


class ServeConfig(Section):
    """How much the service takes on, and how long a request waits."""

    host: str = "127.0.0.1"
    """Address to listen on. Whoever reaches it has programs run here: keep it private."""
    port: int = Field(default=8717, ge=0, le=65_535)
    """0 takes a free one."""
    max_batch: int = Field(default=512, ge=1)
    """Completions in one request."""
    max_waiting: int = Field(default=1_024, ge=1)
    """Candidates that are judged or wait for it; more are answered with 429."""
    max_running: int = Field(default=16, ge=1)
    """Candidates handed to the lanes at once: enough to keep them busy."""
    findings: bool = False
    """Whether right candidates are profiled, for what tools find of them: some seconds more each.
    What judged them before is not asked again."""
    max_known: int = Field(default=20_000, ge=1)
    """Answers kept in memory, some kilobytes each; verdicts are kept in the cache besides."""
    max_wait_s: float = Field(default=60.0, ge=0)
    """Most that one request waits; what is not judged by then is `pending`, and asked for again."""
