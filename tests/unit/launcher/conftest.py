from kopt.cli.launching import make_launcher_known

make_launcher_known()  # before Hydra looks for plug-ins

from hydra.extra.pytest_plugin import (  # noqa: E402
    hydra_restore_singletons,
    hydra_sweep_runner,
    hydra_task_runner,
)

__all__ = ["hydra_restore_singletons", "hydra_sweep_runner", "hydra_task_runner"]
