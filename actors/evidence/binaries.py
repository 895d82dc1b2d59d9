"""What a candidate's builds hold: SASS and usage of its GPU kernels, code of its host functions.

Binaries are data here: they are disassembled and never loaded. Which are the candidate's own
kernels is told by the entry symbols of what it built; names of libraries are not among them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kopt.actors.evidence.command import run_command
from kopt.actors.evidence.tool_paths import find_tool
from kopt.tools.collect.host_code import parse_host_code
from kopt.tools.collect.owners import base_name
from kopt.tools.collect.sass import SassFunction, SassReport, parse_sass
from kopt.tools.collect.unreadable import UnreadableProfile
from kopt.tools.collect.usage import Usage, parse_usage

READ_S = 10.0
"""For all binaries of a candidate; what is not read by then is left out and named."""
MAX_BINARIES = 24
"""Read of one kind, the newest first: an autotuner leaves many."""
MAX_BINARY_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """What was read."""

    sass: SassReport | None = None
    usage: tuple[Usage, ...] = ()
    host_code: SassReport | None = None
    own: tuple[str, ...] = ()
    """Entry points of GPU code."""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Variant:
    """One of several codes of a name."""

    function: SassFunction
    usage: Usage | None


def read_binaries(
    folder: Path | None, *, device: str, launched: Mapping[str, int | None] | None = None
) -> Binaries:
    """Read what lies in a candidate's folder of builds.

    Args:
        folder: the folder; None where it built nothing.
        device: `cuda` reads device code, `cpu` the host's.
        launched: kernels that ran, with their registers: an autotuner leaves code of one name that
            did not run.
    """
    if folder is None or not folder.is_dir():
        return Binaries()
    deadline_s = time.monotonic() + READ_S
    extensions = _files(folder, ".so")
    if device == "cpu":
        return _host_binaries(extensions, deadline_s=deadline_s)
    cubins = _files(folder, ".cubin")
    extensions = [path for path in extensions if _holds_device_code(path)]
    return _device_binaries([*cubins, *extensions], launched=launched or {}, deadline_s=deadline_s)


def _device_binaries(
    paths: Sequence[Path], *, launched: Mapping[str, int | None], deadline_s: float
) -> Binaries:
    if not paths:
        return Binaries()
    cuobjdump, nvdisasm = find_tool("cuobjdump"), find_tool("nvdisasm")
    if cuobjdump is None:
        return Binaries(remarks=("SASS: cuobjdump is not here (CUDA toolkit, or triton's own)",))
    variants: dict[str, list[_Variant]] = {}
    remarks: list[str] = []
    arch: str | None = None
    for path in paths:
        try:
            is_cubin = path.suffix == ".cubin"
            disassemble = [nvdisasm, "-c"] if is_cubin and nvdisasm else [cuobjdump, "-sass"]
            report = parse_sass(_printed([*disassemble, str(path)], deadline_s=deadline_s))
            resources = _printed([cuobjdump, "-res-usage", str(path)], deadline_s=deadline_s)
            usage = {each.name: each for each in parse_usage(resources)}
        except UnreadableProfile as error:
            remarks.append(f"{path.name}: {error}")
            continue
        arch = arch or report.arch
        remarks += report.remarks
        for function in report.functions:
            variant = _Variant(function=function, usage=usage.get(function.name))
            same = variants.setdefault(function.name, [])
            if variant not in same:
                same.append(variant)
    ran = {base_name(name): registers for name, registers in launched.items()}
    chosen = [
        _that_ran(same, registers=ran.get(base_name(name))) for name, same in variants.items()
    ]
    return Binaries(
        sass=SassReport(functions=tuple(each.function for each in chosen), arch=arch)
        if chosen
        else None,
        usage=tuple(each.usage for each in chosen if each.usage is not None),
        own=tuple(variants),
        remarks=tuple(remarks),
    )


def _that_ran(variants: Sequence[_Variant], *, registers: int | None) -> _Variant:
    """Return the one of a name that was launched; without its code where that cannot be told."""
    alike = [
        each for each in variants if each.usage is not None and each.usage.registers == registers
    ]
    if len(variants) == 1 or len(alike) == 1:
        return (variants if len(variants) == 1 else alike)[0]
    return _Variant(function=replace(variants[0].function, counts={}), usage=None)


def _host_binaries(paths: Sequence[Path], *, deadline_s: float) -> Binaries:
    if not paths:
        return Binaries()
    objdump = find_tool("objdump")
    if objdump is None:
        return Binaries(remarks=("disassembly: objdump is not here (GNU binutils)",))
    functions: list[SassFunction] = []
    remarks: list[str] = []
    for path in paths:
        try:
            command = [objdump, "-d", "-C", "--no-show-raw-insn", "-j", ".text", str(path)]
            report = parse_host_code(_printed(command, deadline_s=deadline_s))
        except UnreadableProfile as error:
            remarks.append(f"{path.name}: {error}")
            continue
        functions += report.functions
        remarks += report.remarks
    host = SassReport(functions=tuple(functions)) if functions else None
    return Binaries(host_code=host, remarks=tuple(remarks))


def _printed(command: Sequence[str], *, deadline_s: float) -> str:
    """Return what a disassembler prints.

    Raises:
        UnreadableProfile: it fails, or there is no time left.
    """
    name = Path(command[0]).name
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise UnreadableProfile(name, f"left out: the binaries took more than {READ_S:g} s")
    try:
        done = run_command(command, timeout_s=left_s)
    except OSError as error:
        raise UnreadableProfile(name, f"does not start: {error.strerror}") from None
    if done.returncode is None:
        raise UnreadableProfile(name, f"did not end within {left_s:.3g} s")
    if not done.ended_well:
        words = done.output.strip().splitlines()
        raise UnreadableProfile(name, (words or ["failed"])[-1][:200])
    return done.output


def _files(folder: Path, suffix: str) -> list[Path]:
    """Regular files of a suffix below a folder that a candidate wrote, the newest first."""
    found = []
    for root, _, names in os.walk(folder, followlinks=False):
        for name in names:
            path = Path(root, name)
            if path.suffix == suffix and path.is_file() and not path.is_symlink():
                status = path.stat()
                if 0 < status.st_size <= MAX_BINARY_BYTES:
                    found.append((-status.st_mtime_ns, path))
    return [path for _, path in sorted(found)[:MAX_BINARIES]]


def _holds_device_code(path: Path) -> bool:
    """Whether nvcc put GPU code into a library; Triton's launchers have none."""
    return b".nv_fatbin" in path.read_bytes()
