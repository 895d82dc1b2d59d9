"""What became of a version, in words: the verdict with its figures, the checks, the policy."""

from __future__ import annotations

from typing import assert_never

from kopt.error_line import error_line
from kopt.evaluation import Check, Evaluation
from kopt.prompts.excerpts import fenced, last_lines, short_line
from kopt.timing import Baseline, Timing
from kopt.verdict import (
    Cheated,
    CompileFailed,
    Correct,
    Crashed,
    Incorrect,
    NumericError,
    TimedOut,
    Verdict,
)

MAX_CHECKS = 8
"""Failed checks that are listed."""
MAX_PASSED = 16
"""Passed checks that are named."""
BYTES_ALONE = "inputs and outputs moved once; operations do not count"
"""What the speed of light is the time of: of a large matrix product, much too little."""
ROUNDING = 0.005
"""Of a ratio: below it three digits say the same."""
LEAST_SHARE = 0.05
"""Of the speed of light: below it the figure is not told. Something else than moving inputs and
outputs takes the time then, and it is no aim."""
BASELINE_WORDS: dict[Baseline, str] = {
    "eager": "eager PyTorch",
    "compile": "torch.compile",
    "max_autotune": "torch.compile, max-autotune",
    "given": "the given kernel",
}
STAGES: dict[str, str] = {
    "static": "Its text alone was refused; nothing of it was run.",
    "build": "This is from the import that compiles it ahead.",
    "import": "Importing the module failed.",
    "construct": "Constructing `ModelNew` failed.",
    "correctness": "It failed while it was checked against the reference.",
    "timing": "It passed every check of its values, and failed while it was timed.",
}
"""Stage of a failure to what that means."""
MEANINGS: tuple[tuple[str, str], ...] = (
    ("values:own", "inputs as `get_inputs()` draws them"),
    ("values:signed_normal", "normal inputs of both signs"),
    ("values:shifted_scaled", "inputs of another scale and offset"),
    ("values:heavy_tail", "heavy-tailed inputs with outliers"),
    ("values:ties", "inputs with many equal values"),
    ("values:unit_interval", "inputs within the range that `get_inputs()` draws from"),
    ("weights", "parameters and buffers have to match the reference's by name, shape and dtype"),
    ("structure", "outputs have to have the reference's structure, shapes and dtypes"),
    ("two_outputs", "outputs of several calls, all alive, have to keep their values"),
    ("repeats", "each of many calls on equal inputs has to be right"),
    ("timed_output", "the output of a timed call, on content that had changed"),
    ("inputs_unchanged", "`forward` wrote to its inputs"),
    ("aliasing", "outputs need memory of their own"),
    ("dense", "outputs need a place in memory for each element"),
    ("output_device", "outputs have to be on the reference's device"),
    ("two_clocks", "the time seen from outside is not the one that the candidate's process shows"),
    ("timed_blocks", "work went on beside the timed calls"),
    ("deferred_work", "an output was not what it had been when its call was timed"),
    ("first_calls", "calls on inputs not seen before take longer than the time that is claimed"),
    ("track", "the work may not be left to libraries and PyTorch"),
    ("fallback", "it runs what the reference itself runs, and no kernel of its own"),
    ("speed_of_light", "the time is below what moving the outputs through memory takes"),
)
"""Start of a check's name to what it looks at."""


def verdict_text(evaluation: Evaluation, *, log_characters: int, with_owners: bool = True) -> str:
    """Return what an author needs to know of an evaluation.

    Args:
        evaluation: of the version.
        log_characters: at most, of a compiler's or interpreter's last words.
        with_owners: say whose kernels took the time; a profile beside it says so itself.
    """
    parts = [
        *_verdict(evaluation.verdict, log_characters=log_characters),
        _checks(evaluation),
        _libraries(evaluation, with_owners=with_owners),
    ]
    return "\n\n".join(filter(None, parts))


def _verdict(verdict: Verdict, *, log_characters: int) -> list[str]:
    match verdict:
        case CompileFailed() | Crashed():
            what = "It does not compile" if isinstance(verdict, CompileFailed) else "It crashed"
            line, log = error_line(verdict.log), verdict.log.strip()
            more = last_lines(log, max_characters=log_characters) if log != line else ""
            return [
                f"{what} (stage `{verdict.stage}`){f': {line}' if line else '.'}",
                STAGES.get(verdict.stage, ""),
                fenced(more, info="text") if more else "",
            ]
        case TimedOut():
            return [
                f"It did not end the stage `{verdict.stage}` within {verdict.limit_s:g} s, "
                "and was killed."
            ]
        case Incorrect():
            return [
                f"It is wrong: check `{verdict.check}` failed{_meaning(verdict.check)}.",
                short_line(verdict.detail),
                _error(verdict.error),
            ]
        case Cheated():
            return [
                f"It counts as an attempt to cheat: check `{verdict.check}`"
                f"{_meaning(verdict.check)}.",
                short_line(verdict.detail),
                "Do the work in every call, without what was found.",
            ]
        case Correct():
            return [_timing(verdict.timing), _error(verdict.error)]
        case _:
            assert_never(verdict)


def _timing(timing: Timing) -> str:
    low, high = timing.speedup_ci
    sol_us = light_us(timing)
    first, last = timing.time_ci_us
    others: dict[Baseline, float | None] = {
        "eager": timing.eager_us,
        "compile": timing.compile_us,
        "max_autotune": timing.max_autotune_us,
        "given": timing.given_us,
    }
    others.pop(timing.baseline)
    rows = [
        ("this version", timing.time_us, f"95 % of the median: {in_us(first)} to {in_us(last)}"),
        (BASELINE_WORDS[timing.baseline], timing.baseline_us, "the baseline, in the same race"),
        *((BASELINE_WORDS[name], time, "timed apart") for name, time in others.items()),
        ("speed of light of the problem", sol_us, BYTES_ALONE),
    ]
    table = ["| | time of one call, us | |", "|---|---|---|"]
    table += [
        f"| {name} | {in_us(time)} | {note} |" for name, time, note in rows if time is not None
    ]
    roof = ""
    if sol_us is not None:
        roof = f" It reaches {sol_us / timing.time_us:.0%} of the speed of light."
    slower = " It is slower than the baseline." if high < 1.0 else ""
    if low <= 1.0 <= high:
        slower = " That is no difference beyond the noise."
    return (
        f"It is right. Speed-up {timing.speedup:.3g} [{low:.3g}, {high:.3g}] over the baseline "
        f"`{timing.baseline}`{_of_pairs(timing)}.{slower}{roof}\n\n" + "\n".join(table)
    )


def _of_pairs(timing: Timing) -> str:
    """Say where the speed-up is not the ratio of the two times in the table, and why."""
    ratio = timing.baseline_us / timing.time_us
    if abs(ratio / timing.speedup - 1) < ROUNDING:
        return ""
    found = f"{timing.num_pairs} pairs of calls" if timing.num_pairs else "all calls"
    return f" (of {found}; the ratio of the two times below is {ratio:.3g})"


def light_us(timing: Timing) -> float | None:
    """Return the speed of light as it is told of a result; None where it is no aim or not known."""
    share = timing.sol_share
    return None if share is None or share < LEAST_SHARE else timing.sol_us


def in_us(time_us: float) -> str:
    """Return microseconds with four digits, whole from 1,000 on: no exponent."""
    return f"{time_us:.4g}" if time_us < 1_000 else f"{time_us:.0f}"


def _error(error: NumericError | None) -> str:
    if error is None:
        return ""
    times = ""
    if error.rho is not None:
        times = f", {error.rho:.3g} times the reference's own error"
    return (
        f"Error against the reference in float64, worst over all inputs: at most "
        f"{error.max_abs:.3g} in an element, {error.rel_norm:.3g} in the relative norm{times}."
    )


def _meaning(check: str) -> str:
    meaning = next((words for name, words in MEANINGS if check.startswith(name)), None)
    return f" ({meaning})" if meaning else ""


def _checks(evaluation: Evaluation) -> str:
    reported = getattr(evaluation.verdict, "check", None)
    failed = [
        check
        for check in evaluation.checks
        if not check.passed
        and check.name != reported
        and check.detail != evaluation.verdict.reason
        and not _is_aside(check)
    ]
    lines = [
        f"- `{check.name}`{_meaning(check.name)}: {short_line(check.detail)}"
        for check in failed[:MAX_CHECKS]
    ]
    if len(failed) > MAX_CHECKS:
        lines.append(f"- … {len(failed) - MAX_CHECKS} more")
    is_right = isinstance(evaluation.verdict, Correct)
    title = "Remarks (it counts as right all the same):" if is_right else "Checks that failed:"
    text = "\n".join([title, *lines]) if lines else ""
    if is_right:
        return text
    names = dict.fromkeys(
        check.name for check in evaluation.checks if check.passed and not _is_aside(check)
    )
    if not names:
        return text
    shown = ", ".join(f"`{name}`" for name in list(names)[:MAX_PASSED])
    more = f" and {len(names) - MAX_PASSED} more" if len(names) > MAX_PASSED else ""
    return f"{text}\n\nPassed before that: {shown}{more}.".strip()


def _libraries(evaluation: Evaluation, *, with_owners: bool) -> str:
    if evaluation.library_share is None:
        return ""
    details = (check.detail for check in evaluation.checks if check.name == "provenance")
    whose = next(details, "") if with_owners else ""
    shares = f" By owner: {short_line(whose)}." if whose else ""
    share = f"{evaluation.library_share:.0%} of the device's time"
    return f"{share} went into libraries and PyTorch's own kernels.{shares}"


def _is_aside(check: Check) -> bool:
    """Whether a check is about the text, the baselines or whose work it was: computes nothing."""
    return check.name.startswith(("static:", "baseline:", "provenance"))
