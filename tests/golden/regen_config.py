"""Write tests/golden/config.yaml anew: the composed and validated default configuration."""

import os
from pathlib import Path

from omegaconf import OmegaConf

from kopt.cli.compose import compose_config
from kopt.config import to_plain
from kopt.environment import KERNELBENCH_VARIABLE

GOLDEN = Path(__file__).parent / "config.yaml"


def composed_default() -> str:
    """Return the default configuration as YAML, whatever the environment names."""
    stated = os.environ.pop(KERNELBENCH_VARIABLE, None)
    try:
        return OmegaConf.to_yaml(OmegaConf.create(to_plain(compose_config([]))))
    finally:
        if stated is not None:
            os.environ[KERNELBENCH_VARIABLE] = stated


def main() -> None:
    """Write the file."""
    GOLDEN.write_text(composed_default(), encoding="utf-8")


if __name__ == "__main__":
    main()
