"""What a pool needs on a host, looked for before a server is started. Light: no Ray, no client."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kopt.actors.programmers.vllm_config import VllmConfig
from kopt.errors import ConfigError

PYTHON_VARIABLE = "KOPT_VLLM_PYTHON"
PROBE = "import importlib.util, sys; sys.exit(0 if importlib.util.find_spec('vllm') else 3)"
PROBE_S = 60.0


def find_python(config: VllmConfig, environment: Mapping[str, str]) -> Path:
    """Return the interpreter of the servers' environment, after a look that vLLM is in it.

    Raises:
        ConfigError: none is named, there is no such file, or vLLM is not in its environment.
    """
    named = config.vllm.python or environment.get(PYTHON_VARIABLE, "").strip()
    make_one = "scripts/vllm_env.sh makes such an environment and prints its interpreter"
    if not named:
        raise ConfigError(
            "conf programmer.vllm.python: expected the interpreter of an environment with vLLM, "
            f"found none, nor {PYTHON_VARIABLE}; {make_one}"
        )
    python = Path(os.path.abspath(Path(named).expanduser()))  # a link is what makes it a venv's
    if not python.is_file() or not os.access(python, os.X_OK):
        raise ConfigError(
            f"conf programmer.vllm.python: expected an interpreter, found no program {python}; "
            f"{make_one}"
        )
    probe_environment = {
        name: value for name, value in environment.items() if not name.startswith("PYTHON")
    }
    try:
        done = subprocess.run(
            [str(python), "-c", PROBE],
            env=probe_environment,
            cwd="/",
            capture_output=True,
            check=False,
            timeout=PROBE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(
            f"conf programmer.vllm.python: {python} does not run ({type(error).__name__}); "
            f"{make_one}"
        ) from None
    if done.returncode != 0:
        found = "no package vllm" if done.returncode == 3 else f"exit code {done.returncode}"
        raise ConfigError(
            f"conf programmer.vllm.python: expected vLLM in the environment of {python}, found "
            f"{found}; {make_one}"
        )
    return python


def check_model(config: VllmConfig) -> None:
    """Check that the model is named, and there where it is a folder.

    Raises:
        ConfigError: it is not.
    """
    if config.model is None:
        raise ConfigError(
            "conf programmer.model: expected the folder of a model or its name at the hub, found "
            "none; a pool serves the one model that it names"
        )
    folder = Path(config.model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ConfigError(
                f"conf programmer.model: expected a model's folder, found no config.json in "
                f"{folder}; name the folder that its weights and tokenizer lie in"
            )
    elif config.model.startswith(("/", "./", "../", "~")) or config.model.count("/") > 1:
        raise ConfigError(
            f"conf programmer.model: expected a model's folder, found none at {folder}; correct "
            "the path, or name a model of the hub (ORGANISATION/NAME)"
        )
