"""Errors under the light headers that torch's own would give too, and those that are not certain.

The words are g++ 12's and nvcc 13's.
"""

from pathlib import Path

import pytest

from kopt.actors.build.light_errors import certain_words

KNOWN = frozenset({"at", "Tensor", "kFloat", "relu6", "C10_UNLIKELY", "TORCH_CHECK", "__half"})
SOURCE = """#include <torch/extension.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif
torch::Tensor rows(torch::Tensor x) {
  TORCH_CHECK(x.dim() == 2);
  auto y = torch::empty_like(x);


  return undeclared
}
"""
PATH = Path("/b/main.cpp")


def certain(*errors: str, source: str = SOURCE) -> str | None:
    said = "/b/main.cpp: In function 'rows':\n" + "".join(
        f"{error}\n  10 | …\n" for error in errors
    )
    return certain_words(said, sources={PATH: source}, known=KNOWN)


@pytest.mark.parametrize(
    "error",
    [
        "/b/main.cpp:10:10: error: 'undeclared' was not declared in this scope",
        "/b/main.cpp:5:1: error: 'tensr' does not name a type",
        "/b/main.cpp:10:3: error: 'nonesuch' is not a member of 'at'",
        "/b/main.cpp:10:3: error: 'class at::Tensor' has no member named 'szie'",
        "/b/main.cpp:10:20: error: expected ';' before '}' token",
        "/b/main.cpp:11:2: error: expected '}' at end of input",
        '/b/main.cpp(10): error: identifier "undeclared" is undefined',
        '/b/main.cpp(11): error: expected a ";"',
        '/b/main.cpp(11): error: class "at::Tensor" has no member "szie"',
    ],
)
def test_a_name_that_no_header_has_and_a_slip_of_grammar_are_certain(error: str) -> None:
    assert error in (certain(error) or "")


@pytest.mark.parametrize(
    "error",
    [
        "/b/main.cpp:10:10: error: 'relu6' is not a member of 'at'",
        '/b/main.cpp(10): error: identifier "__half" is undefined',
        "/b/main.cpp:10:10: error: no matching function for call to 'f(at::Tensor&)'",
        "/b/main.cpp:10:10: error: cannot convert 'at::Tensor' to 'int' in return",
        "/torch/include/ATen/x.h:10:10: error: 'undeclared' was not declared in this scope",
        "/b/main.cpp:10:10: error: unused variable 'undeclared' [-Werror=unused-variable]",
        "cc1plus: error: out of memory allocating 65536 bytes",
    ],
)
def test_what_more_declarations_could_mend_is_asked_of_torchs_own_headers(error: str) -> None:
    assert certain(error) is None


def test_a_slip_beside_a_macro_of_torchs_is_not_certain() -> None:
    error = "/b/main.cpp:7:3: error: expected ';' before 'auto'"
    assert certain(error) is not None
    assert certain(error, source=SOURCE.replace("== 2);", "== 2)")) is None


def test_one_error_that_is_not_certain_leaves_all_to_torch() -> None:
    sure = "/b/main.cpp:10:10: error: 'undeclared' was not declared in this scope"
    assert certain(sure) is not None
    assert certain(sure, "/b/main.cpp:10:10: error: no match for 'operator+'") is None


def test_a_condition_on_what_headers_define_leaves_it_to_torch() -> None:
    error = "/b/main.cpp:10:10: error: 'undeclared' was not declared in this scope"
    assert certain(error, source=SOURCE.replace("__AVX2__", "C10_UNLIKELY")) is None
    assert certain(error, source=f"#define OWN 1\n{SOURCE}".replace("__AVX2__", "OWN")) is not None


def test_a_failure_without_an_error_is_not_certain() -> None:
    assert certain() is None


def test_compilers_quote_as_the_language_of_the_host_has_it() -> None:
    error = "/b/main.cpp:10:10: error: \u2018undeclared\u2019 was not declared in this scope"
    assert certain(error) is not None
    assert certain(error.replace("undeclared", "relu6")) is None


def test_suggestions_from_the_light_headers_are_left_out() -> None:
    error = "/b/main.cpp:5:1: error: 'tensr' was not declared in this scope; did you mean 'tensor'?"
    said = certain(error)
    assert said is not None
    assert "error: 'tensr' was not declared in this scope\n" in said
