"""`kopt verify RUN` of a run of ours: every claimed win measured again, claimed against found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from kopt.cli.verify_claims import Win, refusal, wins_of
from kopt.cli.verify_config import verified_config
from kopt.config import RunConfig
from kopt.data.lock import lock_owner
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError
from kopt.evaluation import EvalJson
from kopt.ports import Target

if TYPE_CHECKING:
    from kopt.cli.verify_judge import Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a claimed win."""

    win: Win
    found: EvalJson | None
    """None where nothing could be measured."""
    why: str
    """Why it does not hold; empty where it does."""


@dataclass(slots=True, kw_only=True)
class RunVerification:
    """A verification of a run, as far as it has come."""

    run: RunDir
    ladder: str
    wins: list[Win]
    show: TextIO
    """Where each win is told as it is known."""
    device: str = ""
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    """Position of the win to what became of it."""

    @property
    def num_failed(self) -> int:
        """Wins that do not hold."""
        return sum(bool(outcome.why) for outcome in self.outcomes.values())

    @property
    def holds(self) -> bool:
        """Whether every win was looked at, and holds."""
        return len(self.outcomes) == len(self.wins) and not self.num_failed

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {
            "run": self.run.name,
            "path": str(self.run.path),
            "device": self.device,
            "ladder": self.ladder,
            "claimed": len(self.wins),
            "measured": len(self.outcomes),
            "failed": self.num_failed,
            "holds": self.holds,
            "wins": [_outcome_json(self.outcomes[n]) for n in sorted(self.outcomes)],
        }


def verify_run(
    run: RunDir, overrides: Sequence[str], *, any_device: bool, show: TextIO
) -> RunVerification:
    """Measure every win that a run claims again.

    Args:
        run: that has ended.
        overrides: of CHANGEABLE sections of its configuration.
        any_device: measure also where the run was of another device.
        show: where each win is told as it is known.

    Raises:
        ConfigError: the run is still going, was measured on another device, or an override does
            not fit.
        StoreError: the run folder is damaged.
        KeyboardInterrupt: the user stopped it.
    """
    owner = lock_owner(run.path)
    if owner is not None:
        raise ConfigError(
            f"{run.path} is still going ({owner}); verify it once it has ended: "
            "what runs beside a measurement spoils it"
        )
    manifest = run.read_manifest()
    config = verified_config(manifest, overrides)
    wins = wins_of(run, keep=config.keep_best)
    verification = RunVerification(run=run, ladder=config.evaluate.ladder, wins=wins, show=show)
    try:
        _measure(verification, config, manifest=manifest, any_device=any_device)
    except KeyboardInterrupt:
        show.write(closing_text(verification))
        raise
    show.write(closing_text(verification))
    return verification


def check_device(measured_on: dict[str, Any] | None, here: Target) -> None:
    """Refuse to compare times of two devices.

    Args:
        measured_on: the manifest's `device`; None where the run never had one.
        here: the device that is here.

    Raises:
        ConfigError: they differ.
    """
    if measured_on is None or measured_on.get("name") in (None, here.name):
        return
    raise ConfigError(
        f"the run was measured on {measured_on['name']}, here is {here.name}: times do not "
        "compare; verify it on such a device, or add --any-device"
    )


def closing_text(verification: RunVerification) -> str:
    """Return the closing line."""
    claimed, failed = len(verification.wins), verification.num_failed
    if not claimed:
        path = verification.run.path
        return f"{path} claims no win: nothing to verify; `kopt report {path}` says why\n"
    left = claimed - len(verification.outcomes)
    stopped = f", {left} not measured" if left else ""
    held = claimed - failed - left
    return (
        f"{held} of {claimed} claimed win(s) hold{stopped} "
        f"(ladder {verification.ladder}, {verification.device or 'no device'})\n"
    )


def outcome_text(outcome: Outcome) -> str:
    """Return one win for a person: claimed against found, holds or not."""
    win, found = outcome.win, outcome.found
    claimed = f"claimed {_speedup(win.speedup, win.speedup_ci)} over {win.baseline}"
    if found is not None and found["speedup"] is not None:
        measured = f"found {_speedup(found['speedup'], found['speedup_ci'])} over "
        measured += str(found["baseline"])
    else:
        measured = "found none"
    verdict = "holds" if not outcome.why else f"DOES NOT HOLD: {outcome.why}"
    note = ", on a degenerate problem" if found is not None and found["degenerate"] else ""
    return f"{win.problem.name}  {win.where}  {claimed}, {measured}  {verdict}{note}\n"


def _measure(
    verification: RunVerification,
    config: RunConfig,
    *,
    manifest: dict[str, Any],
    any_device: bool,
) -> None:
    wins = verification.wins
    for position, win in enumerate(wins):
        if win.fault:
            _add(verification, position, Outcome(win=win, found=None, why=win.fault))
    positions = [position for position, win in enumerate(wins) if not win.fault]
    if not positions:
        return
    from kopt.cli.verify_judge import judge_all

    def on_target(target: Target) -> None:
        if not any_device:
            check_device(manifest.get("device"), target)
        verification.device = target.name

    judge_all(
        [(wins[position].problem, wins[position].candidate) for position in positions],
        config=config,
        log_dir=None,
        on_target=on_target,
        on_judged=_taker(verification, positions),
    )


def _taker(
    verification: RunVerification, positions: Sequence[int]
) -> Callable[[int, Judged], None]:
    def take(job: int, judged: Judged) -> None:
        position = positions[job]
        win = verification.wins[position]
        if isinstance(judged, str):
            outcome = Outcome(win=win, found=None, why=f"not measured: {judged}")
        else:
            outcome = Outcome(win=win, found=judged, why=refusal(win, judged))
        _add(verification, position, outcome)

    return take


def _add(verification: RunVerification, position: int, outcome: Outcome) -> None:
    verification.outcomes[position] = outcome
    verification.show.write(outcome_text(outcome))
    verification.show.flush()


def _speedup(speedup: float, interval: tuple[float, float] | None) -> str:
    low, high = interval or (speedup, speedup)
    return f"{speedup:.2f}x [{low:.2f}, {high:.2f}]"


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    win, found = outcome.win, outcome.found
    return {
        "problem": win.problem.problem_id,
        "problem_name": win.problem.name,
        "candidate": win.candidate.candidate_id,
        "where": win.where,
        "claimed": win.speedup,
        "claimed_ci": list(win.speedup_ci),
        "found": None if found is None else found["speedup"],
        "found_ci": None if found is None else found["speedup_ci"],
        "holds": not outcome.why,
        "why": outcome.why,
        "evaluation": found,
    }
