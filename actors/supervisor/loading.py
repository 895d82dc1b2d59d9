"""A candidate from its text to a module in a child: gate 1, import, construction, weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kopt.actors.supervisor.child import Child, ChildFailed
from kopt.actors.supervisor.inputs import renumber
from kopt.actors.supervisor.load_failure import load_verdict
from kopt.actors.supervisor.reference import state_entries
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.trail import Trail
from kopt.actors.verify.weights import match_state
from kopt.candidate import Candidate, Language
from kopt.static_check import static_check
from kopt.verdict import Cheated, CompileFailed, Incorrect


def static_gate(candidate: Candidate, *, languages: tuple[Language, ...], trail: Trail) -> None:
    """Gate 1: the text alone.

    Raises:
        Judged: it cannot work, or holds what no honest kernel needs.
    """
    report = static_check(candidate.source, language=candidate.language, allowed=languages)
    trail.checks += report.evidence
    if report.errors:
        raise trail.fail("static", CompileFailed(stage="static", log="\n".join(report.errors)))
    for tripwire in report.tripwires:
        raise trail.fail("static", Cheated(check=tripwire.name, detail=tripwire.detail))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A candidate in its child."""

    child: Child
    sources: dict[str, str]
    """Its names of weights to the reference's."""


def load_candidate(
    bench: Bench,
    session: Session,
    candidate: Candidate,
    *,
    build_dir: Path | None,
    trail: Trail,
    on_child: Callable[[Child], None],
) -> Loaded:
    """Import and construct the candidate in a child of its own, and match its weights by name.

    Args:
        bench: where children are made.
        session: of its problem.
        candidate: that passed gate 1.
        build_dir: its folder of builds.
        trail: of the evaluation.
        on_child: called with its child before anything of it is loaded.

    Raises:
        Judged: it does not load.
        WorkerLost: the zygote is gone.
    """
    limit_s = bench.config.timeouts.load_s
    reference = session.reference
    child = bench.child(session.problem, build_dir=build_dir)
    try:
        on_child(child)
        child.ask("import", timeout_s=limit_s, source=candidate.source, name="candidate")
        numbers = child.share(reference.argument_tensors)
        child.ask(
            "construct_candidate",
            timeout_s=limit_s,
            arguments=renumber(reference.arguments, numbers),
            seed=reference.init_seed,
        )
        entries = state_entries(child.ask("describe_state", timeout_s=limit_s))
        match = match_state(reference.entries, candidate=entries)
        if match.sources is None:
            raise trail.fail("weights", Incorrect(check="weights", detail=match.reason))
    except ChildFailed as failure:
        child.end()
        raise trail.fail("load", load_verdict(failure)) from None
    except BaseException:
        child.end()
        raise
    trail.passed("weights", match.reason)
    return Loaded(child=child, sources=match.sources)
