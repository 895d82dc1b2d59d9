"""Looking ahead: what a configuration names must be there before anything is started or made."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from kopt.actors.programmers.config import RecordedConfig
from kopt.actors.programmers.ensemble_config import EnsembleConfig
from kopt.actors.programmers.openai_access import access_of
from kopt.actors.programmers.openai_config import ModelConfig, OpenAIConfig
from kopt.actors.programmers.vllm_ahead import check_model, find_python
from kopt.actors.programmers.vllm_config import VllmConfig
from kopt.config import RunConfig
from kopt.data.fleet_file import run_of_arm
from kopt.data.rundir import RunDir
from kopt.data.seeds import Seeds, resolve_seeds
from kopt.errors import ConfigError
from kopt.problem import Problem


def look_ahead(config: RunConfig, problems: Sequence[Problem]) -> Seeds:
    """Find the recording, the key and the seeds that a run needs, and return the seeds.

    Raises:
        ConfigError: a recording, a key or a seed is not there, or is no such thing.
        StoreError: the run that a seed is the best of is damaged.
    """
    models: list[ModelConfig] = []
    if isinstance(config.programmer, ModelConfig):
        models = [config.programmer]
    elif isinstance(config.programmer, EnsembleConfig):
        models = [member.programmer for member in config.programmer.members]
    for model in models:
        if isinstance(model, OpenAIConfig):
            access_of(model, os.environ)
        if isinstance(model, VllmConfig) and config.cluster.address == "local":
            check_model(model)
            find_python(model, os.environ)
        _check_price(config, model)
    if isinstance(config.programmer, RecordedConfig):
        RunDir.open(run_of_arm(config.programmer.run, config.programmer.arm or config.arm_name))
        return {}  # the recording's first ideas are its own
    return resolve_seeds(config.search.seeds, problems, warn=_say)


def _check_price(config: RunConfig, programmer: ModelConfig) -> None:
    """A limit on money that nothing counts towards would never stop the run."""
    price = programmer.price
    if config.limits.cost_usd and not price.prompt_usd_per_mtok + price.completion_usd_per_mtok:
        raise ConfigError(
            "conf limits.cost_usd: without prices it is never reached; set programmer.price."
            "prompt_usd_per_mtok and programmer.price.completion_usd_per_mtok"
        )


def _say(line: str) -> None:
    sys.stderr.write(f"kopt: {line}\n")
