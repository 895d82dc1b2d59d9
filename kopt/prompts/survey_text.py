"""A problem in numbers, in words: sizes that its source only computes, and the times to beat."""

from __future__ import annotations

from collections.abc import Sequence

from kopt.prompts.templates import filled
from kopt.prompts.verdict_text import BASELINE_WORDS, BYTES_ALONE, LEAST_SHARE, in_us
from kopt.survey import SizedTensor, Survey
from kopt.timing import Baseline
from kopt.tools.hardware import Gpu, find_gpu

MAX_TENSORS = 8
"""Of inputs, and of outputs, that are listed, the first ones."""
MAX_STATE = 3
"""Of parameters and buffers, the largest ones: those whose sizes an author reckons with."""


def survey_text(survey: Survey | None, *, device: str = "") -> str:
    """Return the section; empty where nothing is known.

    Args:
        survey: of the problem.
        device: name of the GPU, for what it takes to move bytes there; of an unknown one nothing
            is told.
    """
    if survey is None:
        return ""
    gpu = find_gpu(device)
    lines = [
        _forward(survey),
        _state(survey, gpu),
        _cases(survey.num_cases),
        _times(survey, gpu),
        _memory(survey),
        _product(survey),
    ]
    shown = "\n".join(f"- {line}" for line in lines if line)
    return filled("survey", lines=shown) if shown else ""


def _forward(survey: Survey) -> str:
    if not survey.outputs:
        return ""
    taken = _list([_form(each) for each in survey.inputs], most=MAX_TENSORS)
    given = _list([_form(each) for each in survey.outputs], most=MAX_TENSORS)
    return f"`forward`: {taken or 'no tensor'} to {given}."


def _state(survey: Survey, gpu: Gpu | None) -> str:
    tensors = survey.state
    if not tensors:
        return ""
    number = sum(each.num_elements for each in tensors)
    largest = sorted(tensors, key=lambda each: -each.num_elements)
    named = _list([f"`{each.name}` {_form(each)}" for each in largest], most=MAX_STATE)
    return f"Its state, {number:,} elements: {named}{_read(survey, gpu)}."


def _read(survey: Survey, gpu: Gpu | None) -> str:
    """What reading the state takes, where it is no small part of a call."""
    known = dict(survey.baselines_us)
    if gpu is None or survey.baseline not in known:
        return ""
    read_us = sum(each.num_bytes for each in survey.state) / gpu.tb_per_s * 1e-6
    if read_us < LEAST_SHARE * known[survey.baseline]:
        return ""
    return f"; reading all of it once takes {in_us(read_us)} us"


def _cases(number: int) -> str:
    if number == 1:
        return ""
    return f"It has to be right for {number - 1} more argument lists; the first one is timed."


def _times(survey: Survey, gpu: Gpu | None) -> str:
    known = dict(survey.baselines_us)
    if survey.baseline is None or survey.baseline not in known:
        return ""
    times = ", ".join(
        f"{words} {in_us(known[name])} us{_of_speedups(name, survey)}"
        for name, words in BASELINE_WORDS.items()
        if name in known
    )
    aim = ""
    if survey.sol_us is not None and survey.sol_us >= LEAST_SHARE * known[survey.baseline]:
        reached = ""
        if gpu is not None and gpu.reached_tb_per_s is not None:
            reached_us = survey.sol_us * gpu.tb_per_s / gpu.reached_tb_per_s
            reached = f", {in_us(reached_us)} us as fast as a copy"
        aim = f"; speed of light {in_us(survey.sol_us)} us{reached} ({BYTES_ALONE})"
    return f"A call here, timed apart from any version: {times}{aim}."


def _memory(survey: Survey) -> str:
    if survey.bytes_per_s is None:
        return ""
    return (
        f"Memory and caches move {survey.bytes_per_s / 1e9:.3g} GB/s here, reads and writes "
        "together, as measured with as many bytes as a call's inputs and outputs have."
    )


def _product(survey: Survey) -> str:
    if survey.flop_per_s is None:
        return ""
    return f"A large float32 matrix product reaches {survey.flop_per_s / 1e9:.3g} GFLOP/s here."


def _of_speedups(name: Baseline, survey: Survey) -> str:
    return " (the baseline)" if name == survey.baseline else ""


def _form(tensor: SizedTensor) -> str:
    return f"{tensor.dtype} [{', '.join(map(str, tensor.shape))}]"


def _list(words: Sequence[str], *, most: int) -> str:
    more = len(words) - most
    shown = ", ".join(words[:most])
    return f"{shown}, … {more} more" if more > 0 else shown
