"""Calls of a model: strict schemas, and what is wrong with arguments in one line."""

from __future__ import annotations

import pytest

from kopt.cutlass.calls import (
    BadArguments,
    CheckLayout,
    ListFolder,
    ReadFile,
    Search,
    functions,
    read_call,
)


def test_schemas_are_strict() -> None:
    for each in functions():
        function = each["function"]
        assert function["strict"] is True
        schema = function["parameters"]
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
        assert "title" not in str(schema)


def test_a_call_is_read() -> None:
    assert read_call("search_cutlass", '{"query": "wgmma", "path": null}') == Search(
        query="wgmma", path=None
    )
    assert read_call("check_smem_layout", '{"layout_atom": "A", "shape": [8, 8]}') == CheckLayout(
        layout_atom="A", shape=[8, 8], element=None
    )


def test_what_is_left_out_has_a_default() -> None:
    assert read_call("read_cutlass_file", '{"path": "a.h"}') == ReadFile(
        path="a.h", start=1, lines=120
    )
    assert read_call("list_cutlass_directory", "") == ListFolder(path=".")
    assert read_call("search_cutlass", '{"query": "a"}').path is None


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("search_cutlass", "wgmma", "are no JSON;"),
        ("search_cutlass", "[1]", "are no JSON object"),
        ("search_cutlass", "{}", "query: Field required"),
        ("search_cutlass", '{"query": " "}', "query: Value error, is empty"),
        ("search_cutlass", '{"query": "a", "shell": "rm"}', "shell: Extra inputs"),
        ("read_cutlass_file", "{}", "path: Field required"),
        ("read_cutlass_file", '{"path": "a", "start": "x"}', "start: Input should be"),
        ("check_smem_layout", '{"layout_atom": "A", "shape": [1.5]}', "shape.0: Input should be"),
        ("read_cutlass_file", "[" * 100_000, "are no JSON"),
    ],
)
def test_bad_arguments_are_one_line(name: str, arguments: str, said: str) -> None:
    with pytest.raises(BadArguments) as raised:
        read_call(name, arguments)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert name in str(raised.value)
