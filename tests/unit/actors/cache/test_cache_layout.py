"""Texts that differ in layout alone are one; texts that differ in anything else are not."""

import pytest

from kopt.actors.cache.layout import MAX_BYTES, layout_free
from kopt.actors.cache.native_layout import plain_layout
from kopt.candidate import Candidate

TEXT = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
// twice:  each
void twice(torch::Tensor x) {
    if (x.dim() == 1) {
        TORCH_CHECK(false, "a  b");   /* never
           here */ x.mul_(2);
    }
}
"""
made = load_inline(name="made", cpp_sources=["int  one;"], cuda_sources=cuda_source)


class ModelNew(nn.Module):
    def forward(self, x):
        if x.dim() == 1:
            return made.twice(x)
        return x  # as it is
'''


def digest(source: str) -> str:
    return layout_free(Candidate(source=source, language="cuda"))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.replace("\n", "  \n"),
        lambda text: text.replace("    ", "  "),
        lambda text: text.replace("    ", "\t"),
        lambda text: text + "\n# done\n",
        lambda text: text.replace("x.dim() == 1:", "(x.dim()==1) :"),
        lambda text: text.replace('"made"', "'made'"),
        lambda text: text.replace("int  one", " int one"),
        lambda text: text.replace("twice:  each", "twice: each"),
    ],
)
def test_layout_makes_no_difference(change) -> None:
    assert change(TEXT) != TEXT
    assert digest(change(TEXT)) == digest(TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"a  b"', '"a b"'),
        ("mul_(2)", "mul_(3)"),
        ("int  one", "intone"),
        ("        return x ", "    return x "),
        ("    if (x.dim() == 1) {", "    if (x.dim() == 1) { //"),
        ("#include <torch/extension.h>\n", "#include <torch/extension.h> "),
        ("/* never", "/* never */"),
        ('name="made"', 'name="made "'),
    ],
)
def test_anything_else_makes_a_difference(old, new) -> None:
    assert old in TEXT
    assert digest(TEXT.replace(old, new)) != digest(TEXT)


def test_a_string_that_others_may_read_keeps_its_spaces() -> None:
    for read in ("print(cuda_source)", "f(cuda_source)", "x = cuda_source", "cuda_source += ' '"):
        text = TEXT + read + "\n"
        assert digest(text.replace("    if (x", "  if (x")) != digest(text)


@pytest.mark.parametrize(
    "elsewhere",
    [
        "def load_inline(**all): ...",
        "load_inline = print",
        "torch.utils.cpp_extension.load_inline = print",
        "from mine import load_inline",
        'setattr(torch.utils.cpp_extension, "load_inline", print)',
        "import mine as cpp_extension",
    ],
)
def test_a_loader_that_may_be_another_one_proves_nothing_of_its_strings(elsewhere) -> None:
    text = TEXT.replace("made =", f"{elsewhere}\nmade =")
    expected = elsewhere.startswith("import")  # another name than the one that is called
    assert (digest(text.replace("int  one", "int one")) == digest(text)) == expected


def test_what_is_shown_of_an_expression_keeps_its_spaces() -> None:
    assert digest('y = f"{x = }"\n') != digest('y = f"{x=}"\n')
    assert digest('y = f"{x}"\n') == digest('y = f"{ x }"\n')


def test_a_string_of_python_keeps_its_spaces() -> None:
    assert digest('y = """a\n\nb"""\n') != digest('y = """a\nb"""\n')


@pytest.mark.parametrize(
    "word",
    [
        "import inspect",
        "n = len(open(name).read())",
        "import sys; n = sys._getframe().f_lineno",
        "n = f.__code__.co_firstlineno",
        "x = __file__",
        "f = torch.jit.script(f)",
        "y = x  # type: (Tensor) -> Tensor",
    ],
)
def test_a_text_that_may_read_itself_is_taken_as_it_is(word) -> None:
    text = f"{TEXT}\n{word}\n"
    assert digest(text + "\n") != digest(text)
    assert digest(text) == digest(text)


@pytest.mark.parametrize(
    "text", ["def f(:\n", "x = '\0'\n", "(" * 5_000, "x = 1\n" * MAX_BYTES, "x\udc80 = 1\n"]
)
def test_what_does_not_parse_is_taken_as_it_is(text) -> None:
    assert digest(text) == digest(text)
    assert digest(text + "\n") != digest(text)


MACRO = "#define TWO(x) \\\n    f(x);   \\\n    g(x)\n\n\nint  a;   \n"


def test_an_empty_line_that_ends_a_macro_stays() -> None:
    # Without the empty line, what follows would be of the macro.
    assert plain_layout("#define X \\\n\nint a;") == "#define X \\\n\nint a;"
    assert plain_layout(MACRO) == "#define TWO(x) \\\n    f(x);   \\\n    g(x)\nint  a;"


@pytest.mark.parametrize(
    "text",
    [
        'auto s = R"(\n\n  a  )";\n',
        "int n = __LINE__;\n\n  int m;\n",
        "int n = 1'000;  char c = ' ';\n",
        "#define X \\  \n  y\n",
        "int a;\r\n\r\n",
    ],
)
def test_native_text_that_can_see_its_layout_stays(text) -> None:
    assert plain_layout(text) == text


def test_native_text_has_one_layout() -> None:
    text = (
        "\n\n  int  a;  // it's   here\n\tchar c = ' ',\td = '\\'';\n"
        '/* don\'t\n   * stop */ f("  ");\n'
    )
    assert plain_layout(text) == (
        "int a; // it's here\nchar c = ' ', d = '\\'';\n/* don't\n* stop*/ f(\"  \");"
    )
    assert plain_layout(plain_layout(text)) == plain_layout(text)
