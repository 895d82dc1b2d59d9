"""Which line of a log says what went wrong."""

from __future__ import annotations

import pytest

from kopt.error_line import MAX_CHARACTERS, error_line
from kopt.verdict import CompileFailed, Crashed

TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "candidate.py", line 11, in forward\n'
    "    return run(x)\n"
    "           ^^^^^^\n"
)
GCC = (
    "In file included from k.cpp:1:\n"
    "k.cpp:3:9: warning: unused variable 'error'\n"
    "k.cpp:7:20: error: expected ';' before '}' token\n"
    "    7 |   out[r] = total }\n"
    "      |                 ^\n"
    "k.cpp:9:1: error: 'out' was not declared\n"
    "compilation terminated.\n"
)
LOGS = {
    "compiler": (GCC, "k.cpp:7:20: error: expected ';' before '}' token"),
    "compiler_within_an_exception": (
        f"{TRACEBACK}RuntimeError: {GCC}",
        "k.cpp:7:20: error: expected ';' before '}' token",
    ),
    "missing_header": (
        "k.cpp:1:10: fatal error: omp2.h: No such file or directory\n    1 | #include <omp2.h>\n",
        "k.cpp:1:10: fatal error: omp2.h: No such file or directory",
    ),
    "nvcc": (
        'k.cu(12): error: identifier "x" is undefined\n\n1 error detected in the compilation\n',
        'k.cu(12): error: identifier "x" is undefined',
    ),
    "linker": (
        "/usr/bin/ld: /tmp/k.o: in function `run':\nk.cpp:(.text+0x5): undefined reference to `f'\n"
        "collect2: error: ld returned 1 exit status\n",
        "k.cpp:(.text+0x5): undefined reference to `f'",
    ),
    "exception": (f"{TRACEBACK}AttributeError: no 'y'\n", "AttributeError: no 'y'"),
    "exception_of_several_lines": (
        f"{TRACEBACK}RuntimeError: shapes differ:\nexpected [2, 3]\nfound [3, 2]\n",
        "RuntimeError: shapes differ:",
    ),
    "exception_during_another": (
        f"{TRACEBACK}KeyError: 'a'\n\nDuring handling of the above exception, another exception "
        f"occurred:\n\n{TRACEBACK}triton.compiler.errors.CompilationError: at 3:4:\n    x = y\n",
        "triton.compiler.errors.CompilationError: at 3:4:",
    ),
    "exception_whose_traceback_was_cut_off": (
        "… (cut) …\n    return run(x)\nValueError: no\nmore words\n",
        "ValueError: no",
    ),
    "syntax_error": (
        'Traceback (most recent call last):\n  File "c.py", line 1\n    x = (\n        ^\n'
        "SyntaxError: '(' was never closed\n",
        "SyntaxError: '(' was never closed",
    ),
    "killed": (
        f"{TRACEBACK}KeyError: 'caught'\nthe process ended: killed by SIGSEGV (11)",
        "the process ended: killed by SIGSEGV (11)",
    ),
    "words": ("it is\nall wrong \n\n", "all wrong"),
    "nothing": ("\n \n", ""),
}


@pytest.mark.parametrize("name", LOGS)
def test_the_line_is_the_one_that_says_what_went_wrong(name: str) -> None:
    log, line = LOGS[name]
    assert error_line(log) == line


def test_verdicts_give_it_as_their_reason() -> None:
    assert CompileFailed(stage="build", log=GCC).reason == (
        "build: k.cpp:7:20: error: expected ';' before '}' token"
    )
    assert Crashed(stage="timing", log=f"{TRACEBACK}ValueError: a\nb\n").reason == (
        "timing: ValueError: a"
    )


def test_a_line_of_a_megabyte_is_cut_and_found_at_once() -> None:
    assert len(error_line("x" * 1_000_000)) == MAX_CHARACTERS
    assert error_line("a:" * 500_000 + "\n" + "(" * 500_000)[:1] == "("
