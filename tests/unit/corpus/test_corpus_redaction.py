"""Redaction takes out what is private, and leaves programs as they are."""

import json

import pytest

from kopt.data.corpus.redaction import Redactor, redactor_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key=sk-abcdefghijklmnop1234 end", "key=<key> end"),
        ("token hf_abcdefghijklmnopqrst", "token <key>"),
        ("AKIAABCDEFGHIJKLMNOP", "<key>"),
        ("OPENAI_API_KEY=abcdefgh12345", "<key>"),
        ("Authorization: Bearer abcdef123456.x-y", "Authorization: Bearer <key>"),
        ("password = 'correct horse'", "password = 'correct horse'"),  # no key has a blank
        ('File "/home/ann/x/y.py", line 3', 'File "<path>", line 3'),
        ("/tmp/kopt-build-x1/candidate.cpp:12:5: error", "<path>:12:5: error"),
        ("in /etc/ann/my.yaml", "in <path>"),
        (r"C:\Users\ann\k.py", "<path>"),
        ("http://gpu7:8000/v1", "http://<host>:8000/v1"),
        ("https://u:secretpw@host.example.com/x", "https://<key>@host.example.com/x"),
        ("ann@login3:~$ ls", "<user>@login3:~$ ls"),
        ("mail ann.b@example.org now", "mail <email> now"),
        ('{"log":"\\n/home/ann/k.py failed"}', '{"log":"\\n<path> failed"}'),
    ],
)
def test_what_has_a_form_is_found(text: str, expected: str) -> None:
    got = Redactor().text(text)
    if "<user>" in expected:
        assert "ann" not in got
    else:
        assert got == expected


@pytest.mark.parametrize(
    "program",
    [
        "y = x @ self.weight.T + q@k",
        "a = b / c / d  # half / whole",
        '#include <cuda/std/limits>\n#include "/usr/include/x.h"',
        "@triton.jit\ndef root_mean_square(x): return x",
        "token = tokenizer.encode(text)\nsecret_seed = 1",
        "import torch.utils.cpp_extension as e\ne.load(name='x/y.cpp')",
        "https://docs.nvidia.com/cuda/index.html",
    ],
)
def test_programs_stay_as_they_are(program: str) -> None:
    assert Redactor(users=["root", "test"], hosts=["gpu"]).text(program) == program


def test_names_are_learned_from_the_manifest_and_the_lock() -> None:
    manifest = {"argv": ["/home/carol/bin/kopt"], "config": {"url": "http://rack9-vllm:8000/v1"}}
    redactor = redactor_of(manifest, lock='{"pid": 1, "host": "login5.cluster"}', words=["acme"])
    text = redactor.text("carol ran it on login5 and rack9-vllm for acme; caroline did not")
    assert text == "<user> ran it on <host> and <host> for <user>; caroline did not"
    assert redactor.counts == {"user": 2, "host": 2}


def test_json_stays_json() -> None:
    value = {"log": 'File "/home/ann/a b.py"\n\tsk-abcdefghijklmnopqrst', "path": "/root/x/y"}
    assert json.loads(Redactor().text(json.dumps(value)))["path"] == "<path>"
