"""The programmer `vllm`: a pool of vLLM servers on the cluster; importing it registers it."""

from kopt.actors.programmers.vllm.programmer import VllmProgrammer

__all__ = ["VllmProgrammer"]
