"""The light toolchain of a node: where it lies, whether it is used, and what children see of it.

It is set up once for each torch, compiler and version of ours, by the first who needs it; others
wait. Where it cannot be set up, extensions are built as torch builds them, and a log line says why.
Children are told the same from then on: what one has built, the next would build by the same
commands, and so does not build again.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tempfile
from pathlib import Path

from kopt.actors.build.compilers import Compilers, find_compilers
from kopt.actors.build.provision import CannotProvision, provision

_LOG = logging.getLogger(__name__)
_UNUSABLE = "unusable"
"""A file in place of a toolchain, with the reason."""


def toolchain_folder(cache_dir: Path, *, compilers: Compilers) -> Path:
    """Return where the toolchain for these compilers lies, or would."""
    return cache_dir / "toolchains" / compilers.fingerprint


def provide_toolchain(cache_dir: Path) -> str | None:
    """Set the toolchain up unless it is; this takes half a minute once.

    Returns:
        Why it cannot be used; None where it can.
    """
    compilers = find_compilers()
    folder = toolchain_folder(cache_dir, compilers=compilers)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                _set_up(folder, compilers=compilers)
    except OSError as error:
        _LOG.warning("extensions are built as torch builds them: %s", error)
        return str(error)
    return _reason(folder)


def compiler_environment(cache_dir: Path) -> dict[str, str]:
    """Return the variables by which torch's `load` and `load_inline` find the compilers."""
    compilers = find_compilers()
    environment = {"TORCH_CUDA_ARCH_LIST": compilers.archs} if compilers.archs else {}
    folder = toolchain_folder(cache_dir.absolute(), compilers=compilers)
    if folder.is_dir() and _reason(folder) is None:
        environment["CXX"] = str(folder / "bin" / "g++")
        # It was tried out: torch need not ask it who it is, twice for each extension it loads.
        environment["TORCH_DONT_CHECK_COMPILER_ABI"] = "1"
        if compilers.nvcc is not None:
            environment["PYTORCH_NVCC"] = str(folder / "bin" / "nvcc")
    return environment


def _set_up(folder: Path, *, compilers: Compilers) -> None:
    """Make it aside, and put it in place whole."""
    aside = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    aside.chmod(0o755)  # children may be other users
    try:
        try:
            provision(aside, compilers=compilers)
        except CannotProvision as error:
            _LOG.warning("extensions are built as torch builds them: %s", error)
            shutil.rmtree(aside)
            aside.mkdir()
            (aside / _UNUSABLE).write_text(str(error), encoding="utf-8")
        os.rename(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _reason(folder: Path) -> str | None:
    try:
        return (folder / _UNUSABLE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
