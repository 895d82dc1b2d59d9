"""`kopt run -m`: Hydra's sweep, one run for each combination of `key=a,b`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kopt.cli.compose import CONF_NAME, CONF_PACKAGE, hydra_errors, hydra_overrides, to_mapping
from kopt.cli.exit_codes import BAD_CONFIG, INTERRUPTED
from kopt.cli.run import run_config
from kopt.config import load
from kopt.errors import KoptError

if TYPE_CHECKING:
    from omegaconf import DictConfig


def sweep(overrides: Sequence[str], *, plan: bool, as_json: bool) -> int:
    """Run every combination and return the worst exit code; one that fails stops no other.

    Args:
        overrides: as the user typed them.
        plan: only tell what each would do.
        as_json: print one JSON object a run.

    Raises:
        ConfigError: an override cannot be read.
        KeyboardInterrupt: the user stopped it.
    """
    import hydra

    codes: list[int] = []

    @hydra.main(version_base="1.3", config_path=f"pkg://{CONF_PACKAGE}", config_name=CONF_NAME)
    def one(composed: DictConfig) -> None:
        try:
            codes.append(run_config(load(to_mapping(composed)), plan=plan, as_json=as_json))
        except KoptError as error:
            # A combination that cannot run is one line; the others have their turn.
            sys.stderr.writelines(f"kopt: {line}\n" for line in str(error).splitlines())
            codes.append(BAD_CONFIG)
        if codes[-1] == INTERRUPTED:
            raise KeyboardInterrupt

    additions = hydra_overrides(overrides, sweep=True)
    before = sys.argv
    os.environ["HYDRA_FULL_ERROR"] = "1"  # else Hydra prints and leaves: we turn errors to lines
    try:
        sys.argv = ["kopt", "--multirun", *additions]
        with hydra_errors():
            one()
    finally:
        sys.argv = before
        del os.environ["HYDRA_FULL_ERROR"]
    return max(codes, default=0)
