"""Columns of an unpadded tile are read from shared memory: 32 threads, one bank."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import torch
from torch import nn

NAME = "bank_conflicts"
FLAGS = []
SOURCE = r"""
extern "C" __global__ void column_sums(const float* x, float* out) {
    __shared__ float tile[8][32][32];
    int lane = threadIdx.x, row = threadIdx.y;
    const float* from = x + (long long)(blockIdx.x * 8 + row) * 1024;
    for (int i = 0; i < 32; ++i) tile[row][lane][i] = from[i * 32 + lane];
    __syncwarp();
    float total = 0.0f;
    for (int turn = 0; turn < 8; ++turn) {
        float part = 0.0f;
        for (int i = 0; i < 32; ++i) part += tile[row][lane][i];
        total = turn == 0 ? part : fmaxf(total, part);
        tile[row][lane][turn] += 0.0f * part;
    }
    float* to = out + (long long)(blockIdx.x * 8 + row) * 1024;
    for (int i = 0; i < 32; ++i) to[i * 32 + lane] = __shfl_sync(0xffffffffu, total, i);
}
extern "C" void run(const float* x, float* out, long long n, void* stream) {
    column_sums<<<(unsigned)(n / 8192), dim3(32, 8), 0, (cudaStream_t)stream>>>(x, out);
}
"""


class Model(nn.Module):
    def forward(self, x):
        return (
            x.reshape(-1, 32, 32)
            .transpose(1, 2)
            .sum(-1, keepdim=True)
            .expand(-1, 32, 32)
            .reshape(x.shape)
        )


def get_inputs():
    return [torch.randn(2**22)]


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
