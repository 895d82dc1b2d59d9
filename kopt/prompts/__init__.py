"""Prompts and answers: what a programmer that reads words is told, and what its words come to.

`build` gives the messages for a request; `kopt.prompts.answer.read_answer` gives the candidates of
an answer; `kopt.prompts.language.language_of` tells what a source is written in.
"""

from kopt.prompts.builder import build

__all__ = ["build"]
