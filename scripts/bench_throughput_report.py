"""What bench_throughput.py makes of its measurements: figures, comparison, and the tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bench_throughput_candidates import Mixed
from bench_throughput_kopt import Phase
from bench_throughput_others import Judged, per_hour

from kopt.evaluation import Evaluation


def phase_figures(phase: Phase, candidates: list[Mixed]) -> dict[str, Any]:
    """Return what one of kopt's phases came to."""
    kinds = [each.verdict.kind for each in phase.evaluations.values()]
    whole_s = list(phase.whole_s.values())
    return {
        "judged": len(kinds),
        "verdicts": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
        "wall_s": phase.wall_s,
        "per_gpu_hour": phase.per_hour,
        "stages_s": phase.stages_s(),
        "cpu_s_each": phase.cpu_each_s,
        "call_to_answer_s": sum(whole_s) / max(1, len(whole_s)),
        "on_device": phase.on_device(),
        "timed_share": phase.timed_share(),
        "device_busy": phase.device_busy,
        "lost": phase.lost,
        "each": [
            {
                "label": mixed.label,
                "kind": found.verdict.kind,
                "reason": found.verdict.reason[:200],
                "timeline_s": dict(found.timeline_s),
            }
            for mixed in candidates
            if (found := phase.evaluations.get(mixed.candidate.candidate_id)) is not None
        ],
    }


def other_figures(judged: list[Judged], candidates: list[Mixed]) -> dict[str, Any]:
    """Return what a part of the other evaluator came to."""
    return {
        "judged": len(judged),
        "mean_s": sum(each.wall_s for each in judged) / max(1, len(judged)),
        "cpu_s_each": sum(each.cpu_s for each in judged) / max(1, len(judged)),
        "per_gpu_hour": per_hour(judged, mix=candidates),
        "each": [asdict(each) for each in judged],
    }


def compared(
    candidates: list[Mixed],
    *,
    kopt: dict[str, Phase],
    other: dict[str, list[Judged]],
) -> dict[str, Any]:
    """Return the other's figures, where the two differ, and the ratios, `ratio` last."""
    labels = {mixed.candidate.candidate_id: mixed for mixed in candidates}
    evaluations: dict[str, Evaluation] = {}
    for phase in reversed(kopt.values()):
        evaluations |= phase.evaluations
    unlike = [
        f"{labels[key].label}: made to be {labels[key].outcome}, kopt says {found.verdict.kind} "
        f"({found.verdict.reason[:200]})"
        for key, found in evaluations.items()
        if (found.verdict.kind == "correct") != (labels[key].outcome == "correct")
    ]
    result: dict[str, Any] = {"candidates": len(candidates), "unlike_intent": unlike}
    if other:
        result["stood_in"] = sorted({word for each in other["cold"] for word in each.stood_in})
        for form, judged in other.items():
            result[f"other_{form}"] = other_figures(judged, candidates)
    both = [
        (each, evaluations[each.candidate])
        for each in other.get("cold", [])
        if each.candidate in evaluations
    ]
    differ = [
        f"{each.label}: kopt {mine.verdict.kind} ({mine.verdict.reason[:200]}), "
        f"the other {each.verdict} ({each.reason[:200]})"
        for each, mine in both
        if (each.verdict == "correct") != (mine.verdict.kind == "correct")
    ]
    result |= {"compared": len(both), "agreeing": len(both) - len(differ), "disagreements": differ}
    for form in ("warm", "cold"):
        theirs = result.get(f"other_{form}", {}).get("cpu_s_each")
        own = kopt[form].cpu_each_s if form in kopt else 0.0
        result[f"cpu_ratio_{form}"] = theirs / own if theirs and own else None
    for form, key in (("warm", "ratio_warm"), ("cold", "ratio")):
        rate = per_hour(other.get(form, []), mix=candidates)
        result[key] = kopt[form].per_hour / rate if rate and form in kopt else None
    return result


def report_hardware(result: dict[str, Any]) -> None:
    """Print what it runs on."""
    print(
        f"{result['device_name']} ({result['arch']}), {result['cores']} cores; "
        + ", ".join(f"{name} {value}" for name, value in result["versions"].items() if value),
        flush=True,
    )


def report_phase(form: str, figures: dict[str, Any]) -> None:
    """Print what one of kopt's phases came to."""
    busy = figures["device_busy"]
    print(
        f"kopt {form}: {figures['per_gpu_hour']:.0f} candidates an hour on a device "
        f"({figures['judged']} judged in {figures['wall_s']:.1f} s: "
        + ", ".join(f"{count} {kind}" for kind, count in figures["verdicts"].items())
        + f"); {figures['on_device']:.2f} on the device at a time, one timed for "
        f"{figures['timed_share']:.0%} of the time, device at work "
        + ("not recorded" if busy is None else f"{busy:.0%}")
    )
    print(
        "  seconds a candidate, in the mean: "
        + ", ".join(f"{name} {value:.2f}" for name, value in figures["stages_s"].items())
        + f"; {figures['cpu_s_each']:.2f} of processors",
        flush=True,
    )
    for line in figures["lost"]:
        print(f"  no answer: {line}", flush=True)


def report_other(form: str, figures: dict[str, Any], *, name: str) -> None:
    """Print what a part of the other evaluator came to."""
    print(
        f"{name} {form}: {figures['per_gpu_hour']:.0f} candidates an hour "
        f"({figures['judged']} judged, {figures['mean_s']:.1f} s each, "
        f"{figures['cpu_s_each']:.1f} s of processors)",
        flush=True,
    )


def report(result: dict[str, Any]) -> None:
    """Print what all parts together show."""
    if result.get("stood_in"):
        print(f"stood in for, not used by its evaluation: {', '.join(result['stood_in'])}")
    if "hang" in result:
        hang = result["hang"]
        print(
            f"hanging candidate: {hang['verdict']} after {hang['held_s']:.1f} s with a deadline of "
            f"{hang['deadline_s']:g} s; the other: {hang['other']}"
        )
    print(f"verdicts agree on {result['agreeing']} of {result['compared']}")
    for line in result["disagreements"]:
        print(f"  differs: {line}")
    for line in result["unlike_intent"]:
        print(f"  unlike its intent: {line}")
    shown = {"cold": result["ratio"], "warm": result["ratio_warm"]}
    for form, ratio in shown.items():
        cpu = result[f"cpu_ratio_{form}"]
        print(
            f"ratio {form}: "
            + ("not measured" if ratio is None else f"{ratio:.1f}x")
            + ("" if cpu is None else f"; {cpu:.1f}x by processor seconds")
        )
