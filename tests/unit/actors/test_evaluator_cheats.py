"""Candidates that want to be counted without doing the work. Numbers: classes of exploits."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("leaves_nothing")

MEMOS = {
    "by address": "x.data_ptr()",
    "by identity": "id(x)",
    "by shape": "x.shape",
    "by its first elements": "tuple(x[0, :8].tolist())",
    "by a few elements": "tuple(x[::128, ::64].flatten().tolist())",
}


@pytest.mark.parametrize("memo", MEMOS)
def test_a_remembered_answer_is_incorrect(judge, candidate, memo) -> None:  # 18, 19
    body = f"""
        key = {MEMOS[memo]}
        if key not in answers:
            answers[key] = right(self, x)
        return answers[key].clone()
    """
    made = judge(candidate(body, before="answers = {}"))
    assert made.verdict.kind == "incorrect", made.verdict.reason


def test_an_answer_remembered_only_while_timed_is_incorrect(judge, candidate) -> None:  # 21
    body = """
        key = x.data_ptr()
        seen[key] = seen.get(key, 0) + 1
        if seen[key] < 12 or key not in answers:
            answers[key] = right(self, x)
        return answers[key].clone()
    """
    made = judge(candidate(body, before="answers, seen = {}, {}"))
    assert (made.verdict.kind, made.verdict.check) == ("incorrect", "timed_output")


def test_a_lazy_output_is_a_cheat(judge, candidate) -> None:  # 29
    before = """
        import torch
        class Later(torch.Tensor):
            pass
    """
    made = judge(candidate("return right(self, x).as_subclass(Later)", before=before, hidden=True))
    assert (made.verdict.kind, made.verdict.check) == ("cheated", "output_type")


def test_work_left_to_a_thread_is_incorrect(judge, candidate) -> None:  # 28
    body = """
        import threading, time
        y = torch.empty(512, 256)
        def later():
            time.sleep(0.05)
            y.copy_(right(self, x))
        threading.Thread(target=later, daemon=True).start()
        return y
    """
    made = judge(candidate(body))
    assert made.verdict.kind == "incorrect", made.verdict.reason


def test_a_patched_comparison_changes_nothing(judge, candidate) -> None:  # 6
    before = """
        import torch
        torch.allclose = lambda *a, **k: True
        torch.equal = lambda *a, **k: True
        torch.Tensor.__eq__ = lambda *a: True
    """
    made = judge(candidate("return torch.zeros(512, 256)", before=before, hidden=True))
    assert made.verdict.kind == "incorrect", made.verdict.reason


@pytest.mark.parametrize("path", ["/proc/{pid}/mem", "/proc/{pid}/environ"])
def test_the_memory_of_who_decides_cannot_be_read(judge, candidate, path) -> None:  # 4, 8
    body = f"""
        import os
        def text(path):
            return open(path).read()
        parent = os.getppid()
        if parent:
            above = int(text(f"/proc/{{parent}}/status").split("PPid:")[1].split()[0])
            siblings = text(f"/proc/{{parent}}/task/{{parent}}/children").split()
            others = {{parent, above, *map(int, siblings)}}
        else:  # a PID namespace: what it shows is all there is
            others = {{int(name) for name in os.listdir("/proc") if name.isdigit()}}
        others.discard(os.getpid())
        opened = []
        for pid in others:
            try:
                open({path!r}.replace("{{pid}}", str(pid)), "rb").close()
                opened.append(pid)
            except OSError:
                pass
        raise RuntimeError(f"opened {{len(opened)}} of several: {{len(others) > 0}}")
    """
    made = judge(candidate(body, hidden=True))
    assert made.verdict.kind == "crashed"
    assert "opened 0 of several: True" in made.verdict.reason


def test_shared_inputs_cannot_be_written_by_reopening_them(judge, candidate) -> None:  # 5, 11
    body = """
        import fcntl, os
        sealed = wrote = 0
        folder = "/proc/self/map_files"
        for name in os.listdir(folder) if os.access(folder, os.R_OK) else []:
            try:
                if "memfd:kopt" not in os.readlink(f"{folder}/{name}"):
                    continue
                with open(f"{folder}/{name}", "r+b") as file:
                    if fcntl.fcntl(file, fcntl.F_GET_SEALS):
                        sealed += 1
                        file.write(bytes(64))
                        file.flush()
                        wrote += 1
            except OSError:
                pass
        raise RuntimeError(f"wrote {wrote} sealed ones")
    """
    made = judge(candidate(body, hidden=True))
    assert made.verdict.kind == "crashed"
    assert "wrote 0 sealed ones" in made.verdict.reason
