"""More values are live than the registers that the compiler may use: they go to local memory."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import torch
from torch import nn

NAME = "spilling"
FLAGS = ["-maxrregcount=32"]
SOURCE = r"""
#define LIVE 64
extern "C" __global__ void many_live(const float* x, float* out, long long n) {
    long long stride = n / LIVE, at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= stride) return;
    float live[LIVE];
    #pragma unroll
    for (int i = 0; i < LIVE; ++i) live[i] = __ldg(x + i * stride + at);
    float total = 0.0f;
    #pragma unroll
    for (int i = 0; i < LIVE; ++i) total += live[i];
    #pragma unroll
    for (int turn = 1; turn < 8; ++turn) {
        #pragma unroll
        for (int i = 0; i < LIVE; ++i) live[i] = __fmaf_rn(live[(i + turn) % LIVE], 0.0f, live[i]);
    }
    #pragma unroll
    for (int i = 0; i < LIVE; ++i) out[i * stride + at] = live[i] + total;
}
extern "C" void run(const float* x, float* out, long long n, void* stream) {
    many_live<<<(unsigned)((n / LIVE + 255) / 256), 256, 0, (cudaStream_t)stream>>>(x, out, n);
}
"""


class Model(nn.Module):
    def forward(self, x):
        parts = x.reshape(64, -1)
        total = parts.sum(0)
        return (parts + total).reshape(x.shape)


def get_inputs():
    return [torch.randn(2**24)]


def built():
    """The kernel's library, compiled by nvcc without torch's headers: a second, not a minute."""
    folder = Path(os.environ.get("KOPT_BUILD_DIR", ".")).resolve()
    library, code = folder / f"{NAME}.so", folder / f"{NAME}.cu"
    if not library.exists():
        nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        code.write_text(SOURCE)
        arch = os.environ.get("TORCH_CUDA_ARCH_LIST") or "9.0"
        digits = arch.split(";")[0].split("+")[0].replace(".", "")
        command = [nvcc, "-O3", "-lineinfo", "-shared", "-Xcompiler", "-fPIC", *FLAGS]
        command += [f"-gencode=arch=compute_{digits},code=sm_{digits}"]
        subprocess.run([*command, "-o", str(library), str(code)], check=True)
    return ctypes.CDLL(str(library))


LIBRARY = built() if torch.cuda.is_available() else None


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        stream = torch.cuda.current_stream().cuda_stream
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, out)]
        LIBRARY.run(*pointers, ctypes.c_longlong(x.numel()), ctypes.c_void_p(stream))
        return out
