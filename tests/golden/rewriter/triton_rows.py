"""Written by kopt's rewriter, for modules in train mode.

Generated kernels: fused_0.

Replayed as a CUDA graph.
"""

import triton
import triton.language as tl
import torch
import torch.nn as nn

# kopt rewriter plan: {"algebra":true,"compiled":false,"fold":"call","graphed":true,"schedule":{"cpu_chunk":16384,"cpu_keep":true,"cpu_lanes":64,"cpu_math":"exact","cpu_streaming":false,"gpu_block":0,"gpu_math":"exact","gpu_persistent":16384,"gpu_product":"library","gpu_warps":0},"vendor":[],"without":[]}


@triton.jit
def _fused_0_kernel0(in0, in1, in2, out0):
    x = tl.program_id(0) * 1 + tl.arange(0, 1)[:, None]
    r0 = x
    c = tl.arange(0, 1024)[None, :]
    c0 = c
    v6 = tl.load(in0 + (r0 * 1024 + c0))
    v7 = tl.load(in1 + (r0 * 1024 + c0))
    v8 = v6 + v7
    v9 = v8 * v8
    v10 = tl.sum(tl.broadcast_to(v9, [1, 1024]), axis=1)[:, None]
    v3 = tl.div_rn(v10, 1024.0)
    v4 = v3 + 1e-06
    v5 = tl.rsqrt(v4)
    v11 = v8 * v5
    v12 = tl.load(in2 + (c0))
    v13 = v11 * v12
    tl.store(out0 + (r0 * 1024 + c0), v13)


def fused_0(in0, in1, in2):
    if in0.shape != (4096, 1024) or in0.dtype != torch.float32:
        raise ValueError(f"fused_0: expected torch.float32 of shape (4096, 1024), found {in0.dtype} of shape {tuple(in0.shape)}")
    in0 = in0.contiguous()
    if in1.shape != (4096, 1024) or in1.dtype != torch.float32:
        raise ValueError(f"fused_0: expected torch.float32 of shape (4096, 1024), found {in1.dtype} of shape {tuple(in1.shape)}")
    in1 = in1.contiguous()
    if in2.shape != (1024,) or in2.dtype != torch.float32:
        raise ValueError(f"fused_0: expected torch.float32 of shape (1024,), found {in2.dtype} of shape {tuple(in2.shape)}")
    in2 = in2.contiguous()
    out0 = torch.empty((4096, 1024), dtype=torch.float32, device=in0.device)
    _fused_0_kernel0[(4096,)](in0, in1, in2, out0, num_warps=4)
    return out0


class ModelNew(nn.Module):

    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.3 * torch.randn(width))
        self.eps = eps

    def compute(self, x, residual):
        """Return the result, for arguments that were checked."""
        y = fused_0(x, residual, self.weight)
        return y

    def replay(self, x, residual):
        """Return the result by a CUDA graph of `compute`."""
        kept = self.__dict__.get("_graph")
        if kept is None or kept[1] != [held[name].data_ptr() for held, name in kept[0]]:
            kept = self.__dict__["_graph"] = self.capture(x, residual)
        _, _, graph, own, results = kept
        for mine, given in zip(own, (x, residual)):
            mine.copy_(given)
        graph.replay()
        return results.clone()

    def capture(self, x, residual):
        """Return where the module's tensors are, the graph, its inputs and its results."""
        modules = list(self.modules())
        tables = [t for each in modules for t in (each._parameters, each._buffers)]
        places = [(t, name) for t in tables for name in t if t[name] is not None]
        addresses = [held[name].data_ptr() for held, name in places]
        before = [(each, each.clone()) for each in self.buffers()]
        side = torch.cuda.Stream()
        with torch.no_grad():
            own = [each.clone() for each in (x, residual)]
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

    def forward(self, x, residual):
        """1 generated triton kernel, replayed as a CUDA graph."""
        if x.shape != (4096, 1024) or x.dtype != torch.float32:
            raise ValueError(f"expected x (4096, 1024) torch.float32, found {tuple(x.shape)} {x.dtype}")
        if residual.shape != (4096, 1024) or residual.dtype != torch.float32:
            raise ValueError(f"expected residual (4096, 1024) torch.float32, found {tuple(residual.shape)} {residual.dtype}")
        if x.is_cuda:
            return self.replay(x, residual)
        return self.compute(x, residual)
