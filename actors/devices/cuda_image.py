"""chain.cu compiled for a GPU, by the compiler that torch's CUDA builds come with: no GPU needed.

A zygote has it done once for all its children (preload.py). Not in its own process: NVRTC asks the
driver for devices, and who has asked forks children that cannot use the GPU.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

import torch

from kopt.actors.devices.nvrtc import load_nvrtc

SOURCE = Path(__file__).with_name("chain.cu")


_known: dict[str, bytes] = {}


def chain_image(arch: str) -> bytes:
    """Return chain.cu compiled for an architecture, `sm_90`; from now on it is known here.

    Raises:
        RuntimeError: there is no NVRTC, or it refuses.
    """
    if arch not in _known:
        _known[arch] = _compiled(arch)
    return _known[arch]


@dataclass(frozen=True, slots=True)
class ImageAhead:
    """An image that another process makes meanwhile."""

    arch: str
    _pid: int
    _end: int

    @classmethod
    def begin(cls, arch: str) -> ImageAhead:
        """Fork a process that compiles for an architecture; this one must have no other thread."""
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                with open(theirs, "wb") as end:
                    end.write(_compiled(arch))
            finally:
                os._exit(0)
        os.close(theirs)
        return cls(arch, pid, ours)

    def finish(self) -> None:
        """Wait for it, and know the image; where it failed, whoever needs it finds out why."""
        with open(self._end, "rb") as end:
            image = end.read()
        os.waitpid(self._pid, 0)
        if image:
            _known[self.arch] = image


def _compiled(arch: str) -> bytes:
    major, _, _ = str(torch.version.cuda).partition(".")
    nvrtc = load_nvrtc(major, packages=Path(torch.__file__).parent.parent)
    program = ctypes.c_void_p()
    source = SOURCE.read_bytes()
    _check(
        nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), source, SOURCE.name.encode(), 0, None, None
        ),
        "nvrtcCreateProgram",
    )
    try:
        options = (ctypes.c_char_p * 1)(f"--gpu-architecture={arch}".encode())
        if nvrtc.nvrtcCompileProgram(program, len(options), options):
            raise RuntimeError(f"{SOURCE.name} does not compile for {arch}: {_log(nvrtc, program)}")
        size = ctypes.c_size_t()
        _check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), "nvrtcGetCUBINSize")
        image = ctypes.create_string_buffer(size.value)
        _check(nvrtc.nvrtcGetCUBIN(program, image), "nvrtcGetCUBIN")
        return image.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _log(nvrtc: ctypes.CDLL, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(max(size.value, 1))
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.value.decode(errors="replace").strip()


def _check(code: int, name: str) -> None:
    if code:
        raise RuntimeError(f"{name}: NVRTC error {code}")
