"""Sources, diffs and packed data: what goes in comes out."""

import base64
import gzip
import json

import pytest

from kopt.report.changes import MAX_LINES, changes
from kopt.report.highlight import highlighted
from kopt.report.packing import Texts, packed, shortened

PYTHON = "# fuse\nclass ModelNew:\n    x = 1\n"
NATIVE = 'SOURCE = r"""\nint f() {\n  return 1; // one\n}\n"""\n'


@pytest.mark.parametrize("source", [PYTHON, NATIVE, "", "def (", "\n\n x\t\r\n", "é\u2028\x00"])
@pytest.mark.parametrize("language", ["torch", "cuda"])
def test_runs_join_to_the_source_whatever_it_is(source, language):
    assert "".join(text for _, text in highlighted(source, language=language)) == source


def test_words_have_their_kinds():
    runs = {text.strip(): kind for kind, text in highlighted(PYTHON, language="torch")}
    assert runs["# fuse"] == "c"
    assert runs["class"] == "k"
    assert runs["ModelNew"] == "t"
    assert runs["1"] == "n"


def test_native_source_in_a_string_is_read_as_such_where_the_language_is():
    kinds = {text.strip(): kind for kind, text in highlighted(NATIVE, language="cuda")}
    assert kinds["return"] == "k"
    assert kinds["// one"] == "c"
    plain = {text.strip(): kind for kind, text in highlighted(NATIVE, language="triton")}
    assert "return" not in plain


def test_a_diff_has_the_changed_lines_below_the_names():
    lines = changes("a\nb\n", "a\nc\n", names=("node 1", "node 2"))
    assert lines == ["--- node 1", "+++ node 2", "@@ -1,2 +1,2 @@", " a", "-b", "+c"]


def test_equal_sources_have_no_diff():
    assert changes("a\n", "a\n", names=("node 1", "node 2")) == []


def test_a_long_diff_says_how_much_is_left_out():
    lines = changes("", "x\n" * 1000, names=("node 1", "node 2"))
    assert len(lines) == MAX_LINES + 1
    # 1000 lines, two names and one head of a hunk.
    assert lines[-1] == f"@@ … and {1003 - MAX_LINES} more lines @@"


def test_packed_values_come_back_and_are_always_the_same():
    value = {"a": [1, 2.5, None], "b": "é </script> \ud800"}
    once = packed(value)
    assert once == packed(value)
    text = gzip.decompress(base64.b64decode(once)).decode()
    assert json.loads(text) == {"a": [1, 2.5, None], "b": "é </script> ?"}


def test_a_number_that_is_not_finite_is_not_known():
    text = gzip.decompress(base64.b64decode(packed({"a": [float("nan"), (1.5, float("inf"))]})))
    assert json.loads(text) == {"a": [None, [1.5, None]]}


def test_a_text_is_kept_once():
    texts = Texts()
    assert [texts.place("a"), texts.place("b"), texts.place("a")] == [0, 1, 0]
    assert texts.kept == ["a", "b"]


def test_what_was_cut_out_of_a_text_is_said():
    assert shortened("abcdefgh", most=4) == "ab\n… 4 characters left out …\ngh"
    assert shortened("abcd", most=4) == "abcd"
