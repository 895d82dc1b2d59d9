"""Candidates that replace the loop that times them. Numbers: classes of exploits.

Each has its text kept from gate 1, and its forward is right wherever it is really run. Nothing may
run beside a test where a clock tells; outputs and their digests tell on a busy host too.
"""

from __future__ import annotations

import textwrap

import pytest

from kopt.problem import Problem

pytestmark = pytest.mark.usefixtures("leaves_nothing")

SMALL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(64))
        self.shift = nn.Parameter(torch.zeros(64))

    def forward(self, x):
        return torch.relu(x) * self.scale + self.shift


def get_inputs():
    return [torch.rand(128, 64)]
"""
"""On one thread, in microseconds: a block has many calls, on a busy host too."""

SLOW = """
for _ in range(100):
    y = right(self, x)
return y
"""
"""Much longer than a command takes: what a lie hides is not lost in the noise of a busy host."""


PROBLEM = Problem(name="small", source=SMALL)


@pytest.fixture(scope="module", autouse=True)
def _opened(judge) -> None:
    """Opens the small problem's session ahead of what `leaves_nothing` counts."""
    made = judge(SMALL.replace("class Model(", "class ModelNew("), problem=PROBLEM)
    assert made.verdict.kind == "correct", made.verdict.reason


@pytest.fixture
def verdict(judge, candidate):
    """Returns a function: the evaluation of a body on the small problem, hidden from gate 1."""

    def made(body: str = "return right(self, x)", *, before: str = ""):
        return judge(candidate(body, before=before, hidden=True, model=SMALL), problem=PROBLEM)

    return made


def refusal(made) -> str:
    assert made.verdict.kind in ("cheated", "incorrect"), made.verdict.reason
    return made.verdict.check


# -- clocks ------------------------------------------------------------------------------------

CLOCKS = {
    "stands still": "5",
    "runs ten times too slow": "honest() // 10",
    "runs a third too slow": "honest() * 2 // 3",
    "runs backwards": "-honest()",
    "is no number": "float('nan')",
}


@pytest.mark.alone
@pytest.mark.parametrize("clock", CLOCKS)
def test_a_patched_clock_is_a_cheat(verdict, clock) -> None:  # 30
    before = f"""
        import kopt.actors.child.timed as timed
        import kopt.actors.devices.cpu as device
        honest = device.perf_counter_ns
        device.perf_counter_ns = timed.perf_counter_ns = lambda: {CLOCKS[clock]}
    """
    made = verdict(SLOW, before=before)
    assert made.verdict.kind in ("cheated", "crashed"), made.verdict.reason
    if made.verdict.kind == "cheated":
        assert made.verdict.check in ("clock", "two_clocks", "timed_blocks")


@pytest.mark.alone
def test_clocks_that_are_all_replaced_together_are_a_cheat(verdict) -> None:  # 30
    before = """
        import sys, time
        honest = {name: getattr(time, name) for name in
                  ("perf_counter_ns", "perf_counter", "monotonic", "monotonic_ns", "time")}
        began = {name: clock() for name, clock in honest.items()}
        def slowed(name):
            def read():
                passed = honest[name]() - began[name]
                return began[name] + (passed // 8 if name.endswith("ns") else passed / 8)
            return read
        lies = {clock: slowed(name) for name, clock in honest.items()}
        for module in list(sys.modules.values()):
            for name, value in list(getattr(module, "__dict__", {}).items()):
                try:
                    if value in lies:
                        setattr(module, name, lies[value])
                except Exception:
                    pass
    """
    made = verdict(SLOW, before=before)
    assert refusal(made) in ("two_clocks", "timed_blocks")


@pytest.mark.alone
def test_a_clock_that_lies_in_the_counted_blocks_alone_is_a_cheat(verdict) -> None:  # 21
    before = """
        import kopt.actors.child.timed as timed
        import kopt.actors.child.runner as runner
        honest = timed.time_block
        sizes = []
        def lying(*arguments, count, **options):
            kept, answer = honest(*arguments, count=count, **options)
            sizes.extend([count] if count > 1 else [])  # one call alone leads to a block
            if count > 1 and sizes[-2:] == [count, count]:  # as long as the block before
                answer["calls_us"] = [each / 4 for each in answer["calls_us"]]
                answer["total_us"] /= 4
            return kept, answer
        runner.time_block = lying
    """
    made = verdict(SLOW, before=before)
    assert (made.verdict.kind, made.verdict.check) == ("cheated", "timed_blocks")


@pytest.mark.alone
def test_a_channel_that_alters_what_is_said_is_a_cheat(verdict) -> None:  # 8
    before = """
        from kopt.actors.child.channel import Channel
        honest = Channel.send
        def altered(self, message, *, fds=()):
            if "calls_us" in message:
                message["calls_us"] = [each / 3 for each in message["calls_us"]]
                message["total_us"] /= 3
            honest(self, message, fds=fds)
        Channel.send = altered
    """
    made = verdict(SLOW, before=before)
    assert refusal(made) in ("two_clocks", "timed_blocks")


# -- calls that are not made -------------------------------------------------------------------

LOOP = """
    import kopt.actors.devices.cpu as device
    from time import perf_counter_ns as now
    def loop(self, call, arguments, *, before, after, flush):
        began = now()
        count = len(arguments)
{body}
        took_us = (now() - began) / 1e3
        return device.TimedCalls([took_us / count] * count, took_us)
    device.CpuDevice.time_calls = loop
"""
"""Replaces the loop of timed calls by a body."""

NOT_MADE = {
    "only the last is run": """
        for position in range(count - 1):
            before(position)
        before(count - 1)
        after(call(arguments[-1]))
    """,
    "only the last is run, and stands for all": """
        for position in range(count):
            before(position)
        out = call(arguments[-1])
        for position in range(count):
            after(out)
    """,
    "only the first is run, and stands for all": """
        before(0)
        out = call(arguments[0])
        after(out)
        for position in range(1, count):
            before(position)
            after(out)
    """,
    "the first stands for all, each a little different": """
        before(0)
        out = call(arguments[0])
        after(out)
        for position in range(1, count):
            before(position)
            out = out.clone()
            out.view(-1)[position % out.numel()] *= 1 + 1e-7
            after(out)
    """,
    "every second is left out": """
        for position in range(count):
            before(position)
            if position % 2 == 0 or position == count - 1 > 1:
                out = call(arguments[position])
            after(out)
    """,
    "each gives what the one before should have": """
        before(0)
        last = call(arguments[0])
        after(last)
        for position in range(1, count):
            before(position)
            after(last)
            last = call(arguments[position])
    """,
    "nothing is run": """
        for position in range(count):
            before(position)
            after(arguments[position][0] * 0.5)
    """,
}


@pytest.mark.parametrize("way", NOT_MADE)
def test_calls_that_are_not_made_are_no_timed_calls(verdict, way) -> None:  # 20, 21
    body = textwrap.indent(textwrap.dedent(NOT_MADE[way]), " " * 8)
    made = verdict(before=LOOP.replace("{body}", body))
    assert refusal(made) in ("timed_output", "deferred_work", "two_clocks")  # whichever comes first


def test_fresh_content_that_is_left_out_with_answers_remembered_is_incorrect(
    verdict,
) -> None:  # 18, 21
    before = """
        import kopt.actors.child.chain as chain
        answers = {}
        chain.Chain.before_call = lambda self, position: answers.setdefault("timed", True)
    """
    body = """
        if "timed" not in answers:
            return right(self, x)
        if x.data_ptr() not in answers:
            answers[x.data_ptr()] = right(self, x)
        return answers[x.data_ptr()].clone()
    """
    made = verdict(body, before=before)
    assert (made.verdict.kind, made.verdict.check) == ("incorrect", "timed_output")


# -- work done at another time -----------------------------------------------------------------


def test_all_calls_of_a_block_done_in_one_are_no_timed_calls(verdict) -> None:  # 20
    # Alone, a call takes far longer than its share of a block.
    body = """
        import torch
        xs = []
        for position in range(count):
            before(position)
            xs.append(arguments[position][0].clone())
        for out in right(models[0], torch.cat(xs)).split(xs[0].shape[0]):
            after(out)
    """
    loop = LOOP.replace("{body}", textwrap.indent(textwrap.dedent(body), " " * 8))
    made = verdict("models[:] = [self]" + SLOW, before=textwrap.dedent(loop) + "models = []")
    assert refusal(made) in ("timed_output", "deferred_work")


LATER = """
    import threading
    from time import perf_counter_ns as now
    import kopt.actors.child.runner as runner
    honest = runner.Runner.do_time
    pending = {}
    def early(self, **block):
        def work():
            import torch
            with torch.no_grad():
                pending["answer"] = honest(self, **block)
        pending["work"] = WORK
        began = now()
        while now() - began < 2_000 * block["count"]:
            pass
        total_us = (now() - began) / 1e3
        calls_us = [total_us / block["count"]]
        return {"calls_us": calls_us, "total_us": total_us, "commitment": "0" * 64}
    hand_over = runner.Runner.do_hand_over
    def late(self, **fields):
        JOIN
        return hand_over(self, **fields)
    runner.Runner.do_time = early
    runner.Runner.do_hand_over = late
"""
WHEN = {
    "when its output is asked for": ("work", 'pending["work"]()'),
    "on a thread that is waited for when its output is asked for": (
        "threading.Thread(target=work)",
        'pending["work"].start(); pending["work"].join()',
    ),
}


@pytest.mark.parametrize("when", WHEN)
def test_work_that_is_done_later_is_a_cheat(verdict, when) -> None:  # 20, 28
    work, join = WHEN[when]
    before = LATER.replace("WORK", work).replace("JOIN", join)
    made = verdict(before=before)
    assert (made.verdict.kind, made.verdict.check) == ("cheated", "deferred_work"), (
        made.verdict.reason
    )


@pytest.mark.alone
def test_an_output_that_is_computed_when_it_is_read_is_a_cheat(verdict) -> None:  # 29
    before = """
        import torch
        import kopt.actors.child.exchange as exchange
        honest = exchange.notes_on
        exchange.notes_on = lambda *a: {**honest(*a), "types": []}
        class Later(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, arguments=(), options=None):
                with torch._C.DisableTorchFunctionSubclass():
                    for each in arguments:
                        if isinstance(each, Later) and each.work is not None:
                            work, each.work = each.work, None
                            each.copy_(work())
                    return function(*arguments, **(options or {}))
    """
    body = """
        import torch
        y = torch.empty_like(x).as_subclass(Later)
        held = x.clone()
        def work():
            for _ in range(200):
                z = right(self, held)
            return z
        y.work = work
        return y
    """
    made = verdict(body, before=before)
    assert refusal(made) in ("two_clocks", "timed_blocks", "output_type")


@pytest.mark.alone
def test_work_done_between_the_timed_calls_is_a_cheat(verdict) -> None:  # 33
    before = """
        import kopt.actors.child.chain as chain
        honest = chain.Chain.before_call
        ahead = []
        models = []
        def early(self, position):
            honest(self, position)
            for _ in range(50):
                ahead[:] = [right(models[0], self._content._sets[self.turns[position].number][0])]
        chain.Chain.before_call = early
    """
    body = """
        models[:] = [self]
        return ahead.pop() if ahead else right(self, x)
    """
    made = verdict(body, before=before)
    assert refusal(made) in ("two_clocks", "timed_blocks")


@pytest.mark.alone
def test_work_kept_from_the_call_before_is_a_cheat(verdict) -> None:  # 18, 19
    # Right on any input: a row costs as much as its work, unless it was there in the call before.
    body = """
        import torch
        key = (x.data_ptr(), float(self.scale.sum()), float(self.shift.sum()))
        before, y = answers.get(key, (torch.full_like(x, float("nan")), torch.empty_like(x)))
        changed = (before != x).any(dim=1).nonzero()[:, 0]
        for _ in range(8 * len(changed)):
            rows = right(self, x[changed])
        if len(changed):
            y[changed] = rows
        answers[key] = (x.clone(), y)
        return y.clone()
    """
    made = verdict(body, before="answers = {}")
    assert (made.verdict.kind, made.verdict.check) == ("cheated", "first_calls"), (
        made.verdict.reason
    )
