"""Candidates that want to be counted without doing the work. Numbers: classes of exploits."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("leaves_nothing")

PATCH_CLOCK = """
import kopt.actors.devices.cpu as device
honest = device.perf_counter_ns
device.perf_counter_ns = lambda: {lie}
"""

SLOW = """
    for _ in range(20):
        y = right(self, x)
    return y
"""
"""Much longer than a command takes: what a lie hides is not lost in the noise of a busy host."""

CLOCKS = {
    "stands still": "5",
    "runs ten times too slow": "honest() // 10",
    "runs a fifth too slow": "honest() * 4 // 5",
    "runs backwards": "-honest()",
    "is no number": "float('nan')",
}


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_patched_clock_is_a_cheat(judge, candidate, clock) -> None:  # 30
    before = PATCH_CLOCK.format(lie=CLOCKS[clock])
    made = judge(candidate(SLOW, before=before, hidden=True))
    assert made.verdict.kind in ("cheated", "crashed"), made.verdict.reason
    if made.verdict.kind == "cheated":
        assert made.verdict.check in ("clock", "two_clocks", "timed_blocks")


def test_a_clock_that_lies_in_the_counted_blocks_alone_is_a_cheat(judge, candidate) -> None:  # 21
    before = """
        import kopt.actors.devices.cpu as device
        honest = device.CpuDevice.time_calls
        sizes = []
        def lying(self, call, arguments, **options):
            timed = honest(self, call, arguments, **options)
            sizes.append(len(arguments))
            if sizes[-2:] != sizes[-1:] * 2:  # a block is as long as the one before
                return timed
            return timed._replace(
                each_us=[each / 4 for each in timed.each_us], total_us=timed.total_us / 4
            )
        device.CpuDevice.time_calls = lying
    """
    made = judge(candidate(SLOW, before=before, hidden=True))
    assert (made.verdict.kind, made.verdict.check) == ("cheated", "timed_blocks")


def test_work_done_between_the_timed_calls_is_a_cheat(judge, candidate) -> None:  # 33
    before = """
        import kopt.actors.child.perturb as perturb
        honest = perturb.Perturber.before_call
        ahead = []
        models = []
        def early(self, number):
            honest(self, number)
            ahead[:] = [right(models[0], self._sets[number][0])]
        perturb.Perturber.before_call = early
    """
    body = """
        models[:] = [self]
        return ahead.pop() if ahead else right(self, x)
    """
    made = judge(candidate(body, before=before, hidden=True))
    assert made.verdict.kind == "cheated", made.verdict.reason
    assert made.verdict.check in ("two_clocks", "timed_blocks")


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
        parent = os.getppid()
        status = open(f"/proc/{{parent}}/status").read()
        above = int(status.split("PPid:")[1].split()[0])
        children = open(f"/proc/{{parent}}/task/{{parent}}/children").read().split()
        others = [pid for pid in children if int(pid) != os.getpid()]
        opened = []
        for pid in (parent, above, *others):
            try:
                open({path!r}.replace("{{pid}}", str(pid)), "rb").close()
                opened.append(pid)
            except OSError:
                pass
        raise RuntimeError(f"opened {{len(opened)}} of {{2 + len(others)}}")
    """
    made = judge(candidate(body, hidden=True))
    assert made.verdict.kind == "crashed"
    assert "opened 0 of 3" in made.verdict.reason


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


@pytest.mark.xfail(
    strict=False,
    reason="known hole: of a block of timed calls only the last one's output is ever looked at",
)
def test_a_block_of_which_only_the_last_call_is_run_is_a_cheat(judge, candidate) -> None:  # 20, 21
    before = """
        import kopt.actors.devices.base as base
        import kopt.actors.devices.cpu as device
        from time import perf_counter_ns as now
        def only_last(self, call, arguments, *, before, flush):
            began = now()
            for position in range(len(arguments)):
                before(position)
            out = call(arguments[-1])
            took_us = (now() - began) / 1e3
            return base.TimedCalls([took_us / len(arguments)] * len(arguments), took_us, out)
        device.CpuDevice.time_calls = only_last
    """
    made = judge(candidate(before=before, hidden=True))
    assert made.verdict.kind in ("cheated", "incorrect"), made.verdict.reason
