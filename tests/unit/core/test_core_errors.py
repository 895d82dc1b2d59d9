"""Errors cross process boundaries whole, and read as one line."""

from __future__ import annotations

import pickle

import pytest

from kopt import errors
from kopt.errors import (
    AnswerAwaited,
    ConfigError,
    KoptError,
    ProblemError,
    ProfileFailed,
    ProgrammerRefused,
    ProgrammerUnavailable,
    StoreError,
    WorkerLost,
)

CASES = [
    (KoptError("no"), "no"),
    (ConfigError("no key"), "no key"),
    (ProblemError("builtin/x", "it raises"), "problem builtin/x: it raises"),
    (ProfileFailed("ncu: no permission"), "ncu: no permission"),
    (WorkerLost("gpu-0", "killed"), "worker gpu-0 ended without an answer (killed)"),
    (ProgrammerUnavailable("openai", "no key"), "programmer openai cannot write: no key"),
    (ProgrammerRefused("openai", "wrong key"), "programmer openai cannot write: wrong key"),
    (AnswerAwaited("prompt x-0001"), "prompt x-0001"),
    (StoreError("run/x", "no space"), "run/x: no space"),
]


def test_every_error_class_is_a_case_here() -> None:
    defined = {value for value in vars(errors).values() if isinstance(value, type)}
    assert defined == {type(error) for error, _ in CASES}


@pytest.mark.parametrize(("error", "text"), CASES)
def test_an_error_survives_pickling_with_its_fields_and_text(error, text) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error) == text
    assert vars(back) == vars(error)
    assert isinstance(back, KoptError)


def test_a_wrong_configuration_is_a_value_error_too() -> None:
    assert issubclass(ConfigError, ValueError)
