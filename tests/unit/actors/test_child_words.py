"""An exception in words: where the text went wrong, and no frame of ours above it."""

from __future__ import annotations

import pytest

from kopt.actors.child.module import construct
from kopt.actors.child.words import LOG_CHARACTERS, words_of

SOURCE = """
def fails():
    raise {raised}


class ModelNew:
    def __init__(self, *, width):
        {body}
"""


class Module:
    """What stands for an imported candidate."""


def raised_by(body: str, raised: str = "ValueError('inner')", *, arguments: bool = False) -> str:
    """The words of what constructing a candidate raises."""
    names: dict[str, object] = {}
    source = SOURCE.format(body=body, raised=raised)
    if not arguments:
        source = source.replace("(self, *, width)", "(self)")
    exec(compile(source, "candidate.py", "exec"), names)
    Module.ModelNew = names["ModelNew"]
    with pytest.raises((ValueError, KeyError, TypeError)) as caught:
        construct(Module, "ModelNew", [], seed=0, mode="eval")
    frames = caught.value.__traceback__
    assert frames is not None
    caught.value.__traceback__ = frames.tb_next  # that of this test; a child has none
    return words_of(caught.value)


def test_a_traceback_begins_in_the_authors_text() -> None:
    words = raised_by("fails()")
    assert words.startswith('Traceback (most recent call last):\n  File "candidate.py", line 8')
    assert "module.py" not in words
    assert words.endswith("ValueError: inner\n")


def test_what_no_line_of_the_text_raised_is_one_line() -> None:
    words = raised_by("pass", arguments=True)
    assert words.startswith("TypeError: ")
    assert words.count("\n") == 1
    assert "missing 1 required keyword-only argument: 'width'" in words


def test_what_an_error_came_of_is_told_from_the_authors_text_on_too() -> None:
    body = """try:
            fails()
        except ValueError as error:
            raise KeyError("outer") from error"""
    words = raised_by(body)
    assert "The above exception was the direct cause" in words
    assert "module.py" not in words
    assert words.index("ValueError: inner") < words.index("KeyError: 'outer'")


def test_words_are_bounded_and_can_be_encoded() -> None:
    words = raised_by("fails()", raised="ValueError('\\\\ud800' + 'x' * 50_000)")
    assert len(words) <= LOG_CHARACTERS
    words.encode()
