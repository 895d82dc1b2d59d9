"""Why a server ended, from its last words."""

import pytest

from kopt.actors.programmers.vllm.ending import ending_of


@pytest.mark.parametrize(
    ("code", "lines", "kind", "words"),
    [
        (
            1,
            ["OSError: [Errno 98] Address already in use"],
            "port",
            "its port is taken by another program",
        ),
        (
            1,
            [
                "(EngineCore pid=7) ERROR 11-30 02:46:39 [core.py:15] ValueError: No available "
                "memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
                "RuntimeError: Engine core initialization failed. See root cause above.",
            ],
            "memory",
            "lower programmer.vllm.max_model_len",
        ),
        (-9, ["INFO: loading"], "memory", "killed (by the system, where memory ran out)"),
        (
            1,
            ["/x/python: No module named vllm"],
            "package",
            "No module named vllm; make its environment anew",
        ),
        (
            1,
            [
                "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
                "  Value error, User-specified max_model_len (9) is greater than 8",
                "    For further information visit https://example.com",
            ],
            "other",
            "exit code 1: Value error, User-specified max_model_len (9)",
        ),
        (
            2,
            ["usage: api_server.py", "api_server.py: error: unrecognized arguments: --no"],
            "other",
            "exit code 2: api_server.py: error: unrecognized arguments: --no",
        ),
        (
            0,
            [
                "(Worker pid=7) ERROR 11-30 03:16:45 [executor.py:10] RuntimeError: no offset",
                "(APIServer pid=8) ERROR 11-30 03:16:45 [llm.py:9] x.EngineDeadError: See above",
            ],
            "other",
            "exit code 0: RuntimeError: no offset",
        ),
        (-15, [], "other", "ended by signal 15: it said nothing"),
    ],
)
def test_an_ending_is_one_line_in_the_servers_own_words(code, lines, kind, words) -> None:
    ending = ending_of(code, lines, log="/run/logs/vllm-0.log")
    assert ending.kind == kind
    assert words in ending.reason
    assert "\n" not in ending.reason
    assert ending.reason.endswith("log: /run/logs/vllm-0.log")
