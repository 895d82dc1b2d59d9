"""Asking a child what one forward call runs, and reading its answer, which is untrusted."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kopt.activity import Activity, Ran
from kopt.actors.supervisor.child import Child, ChildFailed
from kopt.actors.supervisor.reference import bind, load_state
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.verdict import last_line

MOST_ENTRIES = 200
NAME_CHARACTERS = 1_000
_Microseconds = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class NoRecord(Exception):
    """There is no record of an activity; the text says why, in one line."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ran: list[
        tuple[
            Annotated[str, Field(max_length=NAME_CHARACTERS)],
            Annotated[int, Field(ge=1)],
            _Microseconds,
        ]
    ] = Field(default=[], max_length=MOST_ENTRIES)
    rest_us: _Microseconds = 0.0
    own_us: _Microseconds = 0.0
    unsure_us: _Microseconds = 0.0
    span_us: _Microseconds = 0.0
    why: Annotated[str, Field(max_length=NAME_CHARACTERS)] = ""


def recorded_activity(child: Child, *, number: int, seed: int, limit_s: float) -> Activity:
    """Return what one call of a child's module ran, as the child says.

    Args:
        child: with the input set bound.
        number: of the input set.
        seed: set before the call.
        limit_s: deadline.

    Raises:
        NoRecord: it gives none, or is gone.
    """
    try:
        answer = child.ask("activity", timeout_s=limit_s, number=number, seed=seed)
    except ChildFailed as failure:
        words = "no end in time" if failure.how == "timed_out" else last_line(failure.log)
        raise NoRecord(f"the call fails while it is recorded: {words}") from None
    return activity_from_json(answer)


def activity_from_json(answer: object) -> Activity:
    """Return the activity in a child's answer.

    Raises:
        NoRecord: the answer says that there is none, or is none.
    """
    try:
        made = _Answer.model_validate(answer, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise NoRecord(f"the record is no record: {where}: {first['msg']}") from None
    if made.why:
        raise NoRecord(last_line(made.why))
    return Activity(
        ran=tuple(
            Ran(name=_shown(name), launches=count, time_us=us) for name, count, us in made.ran
        ),
        rest_us=made.rest_us,
        own_us=made.own_us,
        unsure_us=made.unsure_us,
        span_us=made.span_us,
    )


def _shown(name: str) -> str:
    """A name that may be shown to a person or a model."""
    return "".join(each if each.isprintable() else "?" for each in name)


def reference_activity(bench: Bench, session: Session) -> Activity:
    """Return what one call of the eager reference runs, recorded once for a session.

    In a child of its own: on a GPU a process that was recorded launches kernels more slowly, and
    must not be timed any more.

    Raises:
        NoRecord: there is none.
        WorkerLost: the zygote is gone.
    """
    known = session.activity
    if known is None:
        try:
            known = session.activity = _record_reference(bench, session)
        except NoRecord as failure:
            known = session.activity = str(failure)
    if isinstance(known, str):
        raise NoRecord(known)
    return known


def _record_reference(bench: Bench, session: Session) -> Activity:
    reference = session.reference
    limit_s = reference.limit_s
    number = session.timed()[0]
    judged = session.sets[number]
    try:
        child = bench.child(session.problem)
    except ChildFailed as failure:
        raise NoRecord(f"no process for the reference: {last_line(failure.log)}") from None
    try:
        child.ask("import", timeout_s=limit_s, source=session.problem.source, name="reference")
        child.ask("construct_reference", timeout_s=limit_s, seed=reference.init_seed)
        load_state(child, session.states[-1], timeout_s=limit_s)
        bind(child, judged, number=number, timeout_s=limit_s)
        return recorded_activity(child, number=number, seed=judged.seed, limit_s=limit_s)
    except ChildFailed as failure:
        raise NoRecord(f"the reference cannot be recorded: {last_line(failure.log)}") from None
    finally:
        child.end()
