"""The environment of a server process: what its host gives, and nothing of kopt's or a kernel's."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from kopt.actors.programmers.vllm_config import PoolConfig

_PASSED_ON = (
    "CUDA_DEVICE_ORDER",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "LOGNAME",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
)
_FAMILIES = ("HF_", "NCCL_", "VLLM_")
"""Variables of these families are meant for the server, whoever set them."""
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")
_QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


def server_environment(
    config: PoolConfig, *, python: Path, key: str, device: str, given: Mapping[str, str]
) -> dict[str, str]:
    """Return the whole environment of a server.

    Args:
        config: the pool's section.
        python: the server's interpreter; its folder comes first on PATH.
        key: that requests must carry.
        device: `cpu` or `cuda`.
        given: the environment of the process that starts it.
    """
    kept = {
        name: value
        for name, value in given.items()
        if name in _PASSED_ON or name.startswith(_FAMILIES) or name.lower() in _PROXIES
    }
    own = str(Path(sys.executable).parent)
    paths = given.get("PATH", os.defpath).split(os.pathsep)
    kept["PATH"] = os.pathsep.join([str(python.parent), *(path for path in paths if path != own)])
    kept |= _QUIET
    if device == "cpu":
        kept["VLLM_CPU_KVCACHE_SPACE"] = str(config.cpu_kv_cache_gib)
    return kept | config.environment | {"VLLM_API_KEY": key}
