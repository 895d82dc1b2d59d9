"""The command line of a server: vLLM's OpenAI-compatible entry point, with what the pool needs."""

from __future__ import annotations

from pathlib import Path

from kopt.actors.programmers.vllm_config import VllmConfig

MODULE = "vllm.entrypoints.openai.api_server"
"""The module and not the `vllm` command, which the package for CPUs lacks."""
STRUCTURED = "--structured-outputs-config"
WITHOUT_BLANKS = '{"backend": "xgrammar", "disable_any_whitespace": true}'
"""JSON allows blanks without end, and a weak model fills its answer with them."""
CHUNKED = "--enable-chunked-prefill"
UNCHUNKED = "--no-enable-chunked-prefill"
"""On a CPU a seeded request whose prompt is read in two steps kills the engine (vLLM 0.32 on
torch 2.13: `CPU Generator does not use offset`)."""


def server_command(
    config: VllmConfig, *, python: Path, host: str, port: int, device: str
) -> list[str]:
    """Return the words that start a server.

    Args:
        config: the programmer's section; its model is set.
        python: the server's interpreter.
        host: address to listen on.
        port: to listen on.
        device: `cpu` or `cuda`.
    """
    assert config.model is not None, "checked before a pool is made"
    pool = config.vllm
    folder = Path(config.model).expanduser()
    words = [
        *(str(python), "-m", MODULE),
        *("--model", str(folder.resolve()) if folder.is_dir() else config.model),
        *("--served-model-name", config.served_name),
        *("--host", host, "--port", str(port)),
        *("--tensor-parallel-size", str(pool.tensor_parallel)),
        "--enable-prompt-tokens-details",  # how much of a prompt was cached
    ]
    if pool.max_model_len is not None:
        words += ["--max-model-len", str(pool.max_model_len)]
    if pool.gpu_memory_utilization is not None:
        words += ["--gpu-memory-utilization", str(pool.gpu_memory_utilization)]
    if pool.tool_call_parser is not None:
        words += ["--enable-auto-tool-choice", "--tool-call-parser", pool.tool_call_parser]
    given = {each.partition("=")[0] for each in pool.arguments}
    if STRUCTURED not in given:
        words += [STRUCTURED, WITHOUT_BLANKS]
    if device == "cpu" and config.seeded and CHUNKED not in given:
        words.append(UNCHUNKED)
    return [*words, *pool.arguments]
