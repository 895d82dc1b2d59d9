"""Redaction of many texts at once: the same as of each by itself."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kopt.data.corpus.redaction import Redactor

NAMES = {"hosts": ["gpu-node-17", "nœud.local"], "users": ["mallory", "jürgen"]}
PARTS = (
    *("sk-", "hf_", "ghp_", "github_pat_", "xoxb-", "AKIA", "AIza", "nvapi-", "r8_", "eyJ", "/"),
    *("A1b2C3d4E5f6G7h8I9j0K1", "ABCDEFGHIJ234567", "Bearer ", "bearer ", "MY_API_KEY", "TOKEN"),
    *("api_key", "secret", "password", '"', "'", "\\", "\\n", "=", ":", " ", "\n", "\u00a0", "~"),
    *("https://", "ssh://", "@", "bob", "a.com", "box.internal", "10.0.0.1", "localhost", "/home/"),
    *("/tmp/x", "/usr/include/a.h", "/a/b.py", "x.shape", ".py", "C:\\Users\\", "C:/Users/", "é"),
    *("mallory", "gpu-node-17", "nœud.local", "jürgen", "-----BEGIN RSA PRIVATE KEY-----", "_"),
    *("-----END RSA PRIVATE KEY-----", "]", "(", "word", "\ud800", "run/user/1000/f", "日本"),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.lists(st.sampled_from(PARTS), max_size=9).map("".join), max_size=6))
@example(["/home/é/x", "é@b.com", "password\u00a0=\u00a0'hunter2hunter2'", "\ud800 mallory"])
@example(["a / x.shape", "@triton.jit", "int8_t x", "// key: none", "https: //x"])
def test_many_at_once_are_redacted_as_one_by_one(texts: list[str]) -> None:
    many, each = Redactor(**NAMES), Redactor(**NAMES)
    assert many.texts(texts) == [each.text(text) for text in texts]


def test_what_was_gone_through_ahead_is_not_gone_through_again() -> None:
    redactor = Redactor(users=["mallory"])
    redactor.ahead(["by mallory", "by mallory", "plain"])
    assert [redactor.text("by mallory"), redactor.text("plain")] == ["by <user>", "plain"]
    assert redactor.counts == {"user": 1}
