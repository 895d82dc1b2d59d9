"""An environment that looks as if vLLM were in it; its server is the scripted one."""

from kopt.testing.fake_vllm.environment import FakeVllm

__all__ = ["FakeVllm"]
