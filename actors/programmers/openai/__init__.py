"""The programmer `openai`: any OpenAI-compatible endpoint; importing it registers it."""

from kopt.actors.programmers.openai.programmer import OpenAIProgrammer

__all__ = ["OpenAIProgrammer"]
