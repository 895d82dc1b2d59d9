"""The section of the programmer `vllm`: a pool of vLLM servers that the run starts itself."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from kopt.actors.programmers.openai_config import SECRET_HEADER, ModelConfig
from kopt.section import Section

OWN_ARGUMENTS = {
    "--model": "programmer.model",
    "--served-model-name": "programmer.model",
    "--host": "the pool",
    "--port": "programmer.vllm.port",
    "--api-key": "the pool",
    "--tensor-parallel-size": "programmer.vllm.tensor_parallel",
    "-tp": "programmer.vllm.tensor_parallel",
    "--max-model-len": "programmer.vllm.max_model_len",
    "--gpu-memory-utilization": "programmer.vllm.gpu_memory_utilization",
    "--tool-call-parser": "programmer.vllm.tool_call_parser",
}
"""Arguments of the server that have a key of their own here, and which."""


class PoolConfig(Section):
    """The pool's servers: how many, where, and how each is started and kept."""

    python: str | None = None
    """Interpreter of the environment that vLLM is in (scripts/vllm_env.sh makes one), never
    kopt's own: vLLM pins torch. Null: KOPT_VLLM_PYTHON."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """What the servers run on; `auto`: as candidates do. GPUs of servers are taken from those of
    the cluster before candidates get theirs."""
    replicas: int = Field(default=1, ge=1)
    """Servers; the number is kept for the whole run."""
    tensor_parallel: int = Field(default=1, ge=1)
    """GPUs of one server, all of one node."""
    port: int | None = Field(default=None, ge=1024, le=65_000)
    """Port of the first server, one more for each further; null: free ones."""
    max_model_len: int | None = Field(default=None, ge=256)
    """Tokens of prompt and answer together; null: the model's own."""
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    """Share of a GPU's memory that a server takes; null: vLLM's default."""
    cpu_kv_cache_gib: int = Field(default=1, ge=1)
    """KV cache of a server on a CPU."""
    tool_call_parser: str | None = Field(default=None, min_length=1)
    """How the model writes tool calls, in vLLM's words (`hermes`, …); needed where tools are
    offered. Null: calls are not parsed."""
    arguments: tuple[str, ...] = ()
    """Further arguments of `vllm serve`, one a word."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Further variables of the server's environment, which holds nothing of kopt's."""
    start_s: float = Field(default=900.0, gt=0)
    """For a server to answer after its start."""
    health_s: float = Field(default=5.0, gt=0)
    """Seconds between two looks at a server's health and figures."""
    hung_s: float = Field(default=120.0, gt=0)
    """A server that says for so long that it is not well, or nothing, is killed and replaced."""
    max_restarts: int = Field(default=5, ge=0)
    """Restarts of one server in a row; those before it was up for ten minutes do not count."""
    restart_backoff_s: float = Field(default=1.0, gt=0)
    """Before the first restart; doubles with each in a row, to a minute."""
    drain_s: float = Field(default=30.0, ge=0)
    """A server that is to go may finish what it answers for so long."""
    affinity_slack: int = Field(default=8, ge=0)
    """A search stays with the server that has its prefix cached until it has so many requests
    more than another."""

    @field_validator("arguments")
    @classmethod
    def _not_ours(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            owner = OWN_ARGUMENTS.get(value.partition("=")[0])
            if owner is not None:
                raise ValueError(f"{value.partition('=')[0]} is set by {owner}")
        return values

    @field_validator("environment")
    @classmethod
    def _no_secrets(cls, values: dict[str, str]) -> dict[str, str]:
        for name in values:
            if SECRET_HEADER.search(name):
                raise ValueError(
                    f"{name} looks like a secret, and the run folder keeps the configuration; "
                    "set it in kopt's own environment (HF_TOKEN is handed on)"
                )
        return values


class VllmConfig(ModelConfig):
    """Servers of our own for a model that the cluster can hold."""

    kind: Literal["vllm"] = "vllm"
    vllm: PoolConfig = PoolConfig()

    @property
    def served_name(self) -> str:
        """The model's name in requests: a folder's own name, or the hub's."""
        name = self.model or ""
        return Path(name).name if Path(name).expanduser().is_dir() else name

    def reserved_gpus(self, device: str) -> int:
        """Return the GPUs that the servers take."""
        wanted = self.vllm.device if self.vllm.device != "auto" else device
        return self.vllm.replicas * self.vllm.tensor_parallel if wanted == "cuda" else 0
