"""What bench_scaling.py makes of its measurements: what was to be reached, and the tables."""

from __future__ import annotations

from typing import Any

LEAST_EFFICIENCY = {2: 0.95, 4: 0.95, 8: 0.90}
MOST_FALSE_WINS = 0.01


def efficiency(fleets: list[dict[str, Any]], *, form: str, count: int, part: str) -> float | None:
    """Return the rate of a GPU among `count` over that of one alone; None without both.

    Args:
        fleets: all of them.
        form: `cold` or `warm`.
        count: GPUs.
        part: `steady` or `whole`.
    """
    rates = {
        each["gpus"]: each[part]["per_gpu_hour"]
        for each in fleets
        if each["form"] == form and each[part] is not None
    }
    return rates[count] / rates[1] if count in rates and rates.get(1) else None


def reached(result: dict[str, Any]) -> dict[str, Any]:
    """Return the efficiencies, the false wins beside neighbours and what was lost.

    What was not measured is None.
    """
    fleets = result["fleets"]
    rows = [
        {
            "form": form,
            "gpus": count,
            "steady": efficiency(fleets, form=form, count=count, part="steady"),
            "whole": efficiency(fleets, form=form, count=count, part="whole"),
            "wanted": LEAST_EFFICIENCY.get(count),
        }
        for form in ("cold", "warm")
        for count in sorted({each["gpus"] for each in fleets} - {1})
    ]
    beside = [each["beside"] for each in result["noise"] if each.get("beside")]
    beside = [each for each in beside if "fault" not in each]
    races = sum(each["races"] for each in beside)
    runs = [each for each in [*fleets, result["kill"]] if each is not None]
    # What was stopped from here has open ends, as any run that can be resumed.
    runs = [each for each in runs if each["exit_code"] is not None]
    return {
        "efficiency": rows,
        "false_wins_beside": sum(each["gate"] for each in beside) / races if races else None,
        "races_beside": races,
        "lost": sum(each["lost"] + each.get("missing", 0) for each in runs) if runs else None,
        "doubled": sum(each["doubled"] for each in runs) if runs else None,
    }


def report(result: dict[str, Any]) -> None:
    """Print the tables."""
    print(
        f"{result['gpus']} x {result['device_name']}, {result['cores']} cores, {result['cpu']}; "
        + ", ".join(f"{name} {value}" for name, value in result["versions"].items() if value)
    )
    names = result["problems"]
    print(f"problems: {names if isinstance(names, str) else ' '.join(names)}")
    if result["fleets"]:
        _report_fleets(result)
    if result["kill"] is not None:
        _report_kill(result["kill"])
    for each in result["noise"]:
        _report_noise(each)
    print(f"vLLM pool: {result['vllm']}")
    if result["missing"]:
        print(f"missing: {', '.join(result['missing'])}")
    false = result["false_wins_beside"]
    print(
        f"lost {_number(result['lost'], '.0f')}, doubled {_number(result['doubled'], '.0f')}; "
        f"false wins beside neighbours {_number(false, '.2%')} of {result['races_beside']} races "
        f"(below {MOST_FALSE_WINS:.0%}); {result['wall_s']:.0f} s"
    )


def _report_fleets(result: dict[str, Any]) -> None:
    print(
        f"{'form':<5}{'GPUs':>5}{'cores':>6}{'judged':>7}{'steady':>8}{'/GPU h':>8}{'eff.':>7}"
        f"{'whole/h':>8}{'eff.':>7}{'onset':>7}{'tail':>6}{'held':>12}{'at work':>12}{'on GPU':>8}"
        f"{'driver':>15}{'cpu':>7}{'MB':>6}{'builds wait':>12}"
    )
    for each in sorted(result["fleets"], key=lambda row: (row["form"], row["gpus"])):
        steady, whole = each["steady"] or {}, each["whole"] or {}
        shares = {
            part: efficiency(result["fleets"], form=each["form"], count=each["gpus"], part=part)
            for part in ("steady", "whole")
        }
        held = " ".join(f"{share:.0%}" for share in steady.get("occupancy_by_gpu", ()))
        busy = " ".join(_number(share, ".0%") for share in steady.get("gpu_busy", ()))
        print(
            f"{each['form']:<5}{each['gpus']:>5}{each['cores']:>6}{each['judged']:>7}"
            f"{_number(steady.get('seconds'), '.1f'):>6} s"
            f"{_number(steady.get('per_gpu_hour'), '.0f'):>8}{_number(shares['steady'], '.3f'):>7}"
            f"{_number(whole.get('per_gpu_hour'), '.0f'):>8}{_number(shares['whole'], '.3f'):>7}"
            f"{_number(whole.get('onset_s'), '.1f'):>5} s{_number(steady.get('tail_s'), '.1f'):>6}"
            f"{held:>12}{busy:>12}"
            f"{_number(each.get('stages_s', {}).get('on_device'), '.2f'):>6} s"
            f"{_number(steady.get('driver_cpu_ms_each'), '.0f'):>5} ms "
            f"{_number(steady.get('driver_core_share'), '.0%'):>6}"
            f"{_number(steady.get('cpu_s_each'), '.1f'):>5} s"
            f"{_number(whole.get('driver_rss_mb'), '.0f'):>6}"
            f"{_number(steady.get('builds_waiting'), '.1f'):>12}"
        )
    for each in result["fleets"]:
        stages = each.get("stages_s")
        if stages:
            words = ", ".join(f"{name} {value:.2f}" for name, value in stages.items())
            print(f"  {each['form']} {each['gpus']}: seconds a candidate: {words}")
        trouble = _trouble(each)
        if trouble:
            print(f"  {each['form']} {each['gpus']}: {trouble}")


def _report_kill(kill: dict[str, Any]) -> None:
    recovered = kill.get("recovered_s")
    print(
        f"killed in mid-run: {'a device worker' if kill['was_killed'] else 'nothing: no moment'}"
        f" after {kill.get('judged_before', 0)} verdicts, {kill.get('held', 0)} candidates held; "
        f"the run ended with {kill['exit_code']}, {kill['judged']} judged, {kill['lost']} lost, "
        f"{kill['doubled']} doubled, {kill.get('missing', 'unknown')} missing and "
        f"{kill.get('more', 'unknown')} more than without; all places held again after "
        f"{_number(recovered, '.1f')} s"
    )
    if _trouble(kill):
        print(f"  {_trouble(kill)}")


def _report_noise(noise: dict[str, Any]) -> None:
    for state in ("alone", "beside"):
        found = noise.get(state)
        head = f"A/A on GPU {noise['gpu']}, {state}"
        if not found or "fault" in found:
            chain = noise.get("chain") or {}
            why = (found or {}).get("fault") or noise.get("fault") or chain.get("fault")
            print(f"{head}: missing{f' ({why})' if why else ''}")
            continue
        wins = found["false_wins_gate"]
        print(
            f"{head}: {wins['count']} false wins by gate 4 in {found['races']} races "
            f"[{wins['ci'][0]:.2%}, {wins['ci'][1]:.2%}], {found['interval']} by the interval, "
            f"{found['refused']} refused; log-ratio {_number(found['mean'], '+.4f')} with a spread "
            f"of {_number(found['spread'], '.4f')}; {found['baseline_us']:.1f} us, "
            f"{found['pairs_of_processes']} pairs of processes, {found['seconds']:.1f} s"
        )
    load = noise.get("load")
    if load:
        print(
            f"  beside it {load['gpus']} GPU(s) judged {load['per_gpu_hour']:.0f} an hour each, "
            f"lane held {_number(load.get('occupancy'), '.0%')}"
        )


def _trouble(run: dict[str, Any]) -> str:
    parts = []
    if run["exit_code"] != 0:
        parts.append(f"exit {run['exit_code']}: {run['words'][-400:]}")
    if run["judged"] < run["asked_for"]:
        parts.append(f"{run['judged']} of {run['asked_for']} judged ({run['ends']})")
    if run["fault"]:
        parts.append(run["fault"])
    parts += run["setbacks"][:2]
    return "; ".join(parts)


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
