"""What a child that was forked ahead learns when it gets its candidate."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping


def adopt(builds: int, *, environment: Mapping[str, str], folder: str) -> None:
    """Take a candidate's environment, and a copy of what was built for it.

    The builds come by a descriptor, which is closed before any code of the candidate is loaded:
    where they really lie, this process cannot see.

    Args:
        builds: descriptor of the folder of builds, closed here.
        environment: the whole of it.
        folder: where the copy goes; memory, gone with this process.

    Raises:
        OSError: they cannot be copied.
    """
    try:
        os.environ.clear()
        os.environ.update(environment)
        shutil.copytree(f"/proc/self/fd/{builds}", folder, symlinks=True, dirs_exist_ok=True)
    finally:
        os.close(builds)
