"""Written by kopt's rewriter, for modules in train mode.

Convolutions with their channels innermost, kernels by torch.compile, replayed as a CUDA graph.

Weights are folded at every call.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

# kopt rewriter plan: {"algebra":true,"compiled":true,"fold":"call","graphed":true,"schedule":null,"vendor":["channels_last"],"without":[]}


class ModelNew(nn.Module):

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=3)
        self.pool = nn.AvgPool2d(2)

    def compute(self, images):
        """Return the result, for arguments that were checked."""
        y = images.contiguous(memory_format=torch.channels_last)
        weight = self.conv.weight.contiguous(memory_format=torch.channels_last)
        y = F.conv2d(y, weight, self.conv.bias)
        y = F.avg_pool2d(y, kernel_size=2)
        y = y.contiguous()
        return y

    def compiled(self):
        """Return `compute` as torch.compile makes it at its first call."""
        if "_compiled" not in self.__dict__:
            self.__dict__["_compiled"] = torch.compile(self.compute, dynamic=False)
        return self.__dict__["_compiled"]

    def replay(self, images):
        """Return the result by a CUDA graph of `compute`."""
        kept = self.__dict__.get("_graph")
        if kept is None or kept[1] != [held[name].data_ptr() for held, name in kept[0]]:
            kept = self.__dict__["_graph"] = self.capture(images)
        _, _, graph, own, results = kept
        for mine, given in zip(own, (images,)):
            mine.copy_(given)
        graph.replay()
        return results.clone()

    def capture(self, images):
        """Return where the module's tensors are, the graph, its inputs and its results."""
        modules = list(self.modules())
        tables = [t for each in modules for t in (each._parameters, each._buffers)]
        places = [(t, name) for t in tables for name in t if t[name] is not None]
        addresses = [held[name].data_ptr() for held, name in places]
        before = [(each, each.clone()) for each in self.buffers()]
        side = torch.cuda.Stream()
        with torch.no_grad():
            own = [each.clone() for each in (images,)]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):  # kernels are compiled, and libraries choose theirs
                    self.compiled()(*own)
            torch.cuda.current_stream().wait_stream(side)
            for each, held in before:
                each.copy_(held)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                results = self.compiled()(*own)
        return places, addresses, graph, own, results

    def forward(self, images):
        """The reference's calls, written straight, convolutions with their channels innermost, kernels by torch.compile, replayed as a CUDA graph."""
        if images.shape != (8, 16, 64, 64) or images.dtype != torch.float32:
            raise ValueError(f"expected images (8, 16, 64, 64) torch.float32, found {tuple(images.shape)} {images.dtype}")
        if images.is_cuda:
            return self.replay(images)
        return self.compiled()(images)
