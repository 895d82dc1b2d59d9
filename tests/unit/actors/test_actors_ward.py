"""The ward of the device lane: who is lent, and what is said of who is not."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from kopt.actors.code_tree import code_tree
from kopt.actors.ward import DeviceWard
from kopt.device_health import DeviceFacts, Quarantine
from kopt.evaluation import Evaluation
from kopt.ports import Target
from kopt.testing.fakes import correct, evaluation_of, source_candidate
from kopt.testing.small_fleet import small_problem
from kopt.verdict import Crashed, Verdict

H200 = Target(device="cuda", name="H200", arch="sm_90", languages=("cuda",))


def facts(device: str, *, worker: int = 0) -> DeviceFacts:
    return DeviceFacts(device=device, host="node", name="H200", worker=worker)


def answer(verdict: Verdict, *, number: int = 0, device: str = "H200") -> Evaluation:
    return evaluation_of(
        verdict,
        problem=small_problem(f"set/{number}"),
        candidate=source_candidate("class ModelNew: ..."),
        device=device,
    )


class Answering:
    """A method of an actor, as Ray's handles have it."""

    def __init__(self, value: object) -> None:
        self._value = value

    async def remote(self) -> object:
        return self._value


class Handle:
    """An actor's handle."""

    def __init__(self, target: Target, health: DeviceFacts) -> None:
        self.target = Answering(target)
        self.health = Answering(health)


def test_a_device_in_quarantine_is_said_once_and_not_lent_to_its_next_worker() -> None:
    said: list[Quarantine] = []
    ward = DeviceWard(said.append)
    assert ward.meet(0, H200, facts("GPU-1"))
    for _ in range(5):
        ward.lost(0, "died")
    assert [each.device for each in said] == ["GPU-1"]
    assert not asyncio.run(ward.admit(0, Handle(H200, facts("GPU-1"))))
    assert asyncio.run(ward.admit(0, Handle(H200, facts("GPU-2"))))
    assert len(said) == 1


def test_a_device_of_another_kind_is_not_lent_beside_the_first() -> None:
    said: list[Quarantine] = []
    ward = DeviceWard(said.append)
    assert ward.meet(0, H200, facts("GPU-1"))
    other = replace(facts("GPU-2", worker=1), name="A100")
    assert not ward.meet(1, replace(H200, name="A100", arch="sm_80"), other)
    assert said[0].reason == "the fleet is timed on H200, and on one kind of device"


def test_a_node_with_another_tree_of_kopt_is_not_lent() -> None:
    said: list[Quarantine] = []
    ward = DeviceWard(said.append)
    assert ward.meet(0, H200, replace(facts("GPU-1"), code=code_tree()))
    assert not ward.meet(1, H200, replace(facts("GPU-2", worker=1), code="of-last-week"))
    assert "runs another kopt (of-last-week) than the driver" in said[0].reason


def test_references_that_take_longer_on_one_gpu_take_it_out_and_a_cpu_never() -> None:
    for device, stays in (("H200", False), ("cpu", True)):
        ward = DeviceWard(lambda quarantine: None)
        for worker in range(2):
            ward.meet(worker, H200, facts(f"GPU-{worker}", worker=worker))
        for number in range(3):
            quick = answer(correct(2.0, baseline_us=100.0), number=number, device=device)
            slow = answer(correct(2.0, baseline_us=140.0), number=number, device=device)
            assert ward.answered(0, quick)
            is_lent = ward.answered(1, slow)
        assert is_lent is stays


def test_a_verdict_without_a_time_is_an_answer_all_the_same() -> None:
    said: list[Quarantine] = []
    ward = DeviceWard(said.append)
    ward.meet(0, H200, facts("GPU-1"))
    for _ in range(4):
        ward.lost(0, "died")
        assert ward.answered(0, answer(Crashed(stage="correctness", log="its own fault")))
    assert said == []
    assert ward.answered(7, "of a worker that said nothing of its device")
