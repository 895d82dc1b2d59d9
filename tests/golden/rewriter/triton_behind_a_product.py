"""Written by kopt's rewriter, for modules in train mode.

Generated kernels: fused_0.

Replayed as a CUDA graph.
"""

import triton
import triton.language as tl
import torch
import torch.nn as nn
import torch.nn.functional as F

# kopt rewriter plan: {"algebra":true,"compiled":false,"fold":"call","graphed":true,"schedule":{"cpu_chunk":16384,"cpu_keep":true,"cpu_lanes":64,"cpu_math":"exact","cpu_streaming":false,"gpu_block":0,"gpu_math":"exact","gpu_persistent":16384,"gpu_product":"library","gpu_warps":0},"vendor":[],"without":[]}


@triton.jit
def _fused_0_exp(x):
    y = tl.where(x > 89.0, 89.0, x)
    y = tl.where(y < -104.0, -104.0, y)
    n = tl.floor(y * 1.44269504 + 0.5)
    r = (y - n * 0.693359375) - n * -0.00021219444
    p = r * r * ((((0.00139517172 * r + 0.00836959841) * r + 0.0416661873) * r + 0.166665129) * r + 0.50000001) + r + 1.0
    half = tl.floor(n * 0.5)
    return p * tl.exp2(half) * tl.exp2(n - half)


@triton.jit
def _fused_0_sigmoid(x):
    return 1.0 / (1.0 + _fused_0_exp(-x))


@triton.jit
def _fused_0_kernel0(in0, in1, out0):
    i = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    c0 = i % 1024
    r0 = i // 1024
    v0 = tl.load(in0 + (r0 * 1024 + c0))
    v1 = _fused_0_sigmoid(v0)
    v2 = v0 * v1
    v3 = tl.load(in1 + (c0))
    v4 = v2 * v3
    tl.store(out0 + (r0 * 1024 + c0), v4)


def fused_0(in0, in1):
    if in0.shape != (1024, 1024) or in0.dtype != torch.float32:
        raise ValueError(f"fused_0: expected torch.float32 of shape (1024, 1024), found {in0.dtype} of shape {tuple(in0.shape)}")
    in0 = in0.contiguous()
    if in1.shape != (1024,) or in1.dtype != torch.float32:
        raise ValueError(f"fused_0: expected torch.float32 of shape (1024,), found {in1.dtype} of shape {tuple(in1.shape)}")
    in1 = in1.contiguous()
    out0 = torch.empty((1024, 1024), dtype=torch.float32, device=in0.device)
    _fused_0_kernel0[(1024,)](in0, in1, out0, num_warps=4)
    return out0


class ModelNew(nn.Module):

    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = nn.Parameter(1.0 + 0.3 * torch.randn(out_features))

    def compute(self, x):
        """Return the result, for arguments that were checked."""
        y = F.linear(x, self.linear.weight, self.linear.bias)
        y = fused_0(y, self.scale)
        return y

    def replay(self, x):
        """Return the result by a CUDA graph of `compute`."""
        kept = self.__dict__.get("_graph")
        if kept is None or kept[1] != [held[name].data_ptr() for held, name in kept[0]]:
            kept = self.__dict__["_graph"] = self.capture(x)
        _, _, graph, own, results = kept
        for mine, given in zip(own, (x,)):
            mine.copy_(given)
        graph.replay()
        return results.clone()

    def capture(self, x):
        """Return where the module's tensors are, the graph, its inputs and its results."""
        modules = list(self.modules())
        tables = [t for each in modules for t in (each._parameters, each._buffers)]
        places = [(t, name) for t in tables for name in t if t[name] is not None]
        addresses = [held[name].data_ptr() for held, name in places]
        before = [(each, each.clone()) for each in self.buffers()]
        side = torch.cuda.Stream()
        with torch.no_grad():
            own = [each.clone() for each in (x,)]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):  # kernels are compiled, and libraries choose theirs
                    self.compute(*own)
            torch.cuda.current_stream().wait_stream(side)
            for each, held in before:
                each.copy_(held)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                results = self.compute(*own)
        return places, addresses, graph, own, results

    def forward(self, x):
        """1 generated triton kernel, replayed as a CUDA graph."""
        if x.shape != (1024, 256) or x.dtype != torch.float32:
            raise ValueError(f"expected x (1024, 256) torch.float32, found {tuple(x.shape)} {x.dtype}")
        if x.is_cuda:
            return self.replay(x)
        return self.compute(x)
