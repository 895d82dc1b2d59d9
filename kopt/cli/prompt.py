"""`kopt prompt`: the prompt of a node as it was sent, from the run's journal or its mailbox."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE
from kopt.cli.output import write_json
from kopt.cli.prompt_calls import calls_json, calls_text
from kopt.cli.prompt_open import open_prompt
from kopt.cli.prompt_place import Place, find
from kopt.data.fold import ExpansionState, SearchState, fold
from kopt.data.journal_files import read_events
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError, StoreError
from kopt.ports import Message
from kopt.prompts.tokens import prompt_tokens, shared_prefix
from kopt.prompts.transcript import transcript

EPILOG = """\
NODE is one of
  12        a node of the tree, as `kopt replay` and the journal count them
  3fa9c1    the first digits of a candidate's id, at least four
  @7        the expansion that was asked as number 7, whatever became of it; of a mailbox also
            one whose prompt lies open

examples:
  kopt prompt runs/first 12
  kopt prompt runs/first @0 --search builtin/softmax/default/0 --json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """How long a prompt is, and how much of it others of its search begin with; about."""

    tokens: int
    num_prompts: int
    """Of the search, as far as they can be read."""
    stable_tokens: int | None
    """At the start of all of them; None where it has one."""
    shared_tokens: int | None
    """At the start of the prompt before it as well; None for the first."""

    def __str__(self) -> str:
        words = f"about {self.tokens:,} tokens"
        if self.stable_tokens is not None:
            words += (
                f"; {self.stable_tokens:,} of them stand at the start of all {self.num_prompts} "
                "prompts of its search"
            )
        if self.shared_tokens is not None:
            words += f", {self.shared_tokens:,} at that of the one before it"
        return words


def main(arguments: Sequence[str]) -> int:
    """Print one prompt.

    Raises:
        ConfigError: there is no such run, search or node, several are meant, or nobody was asked
            in words for it.
        StoreError: the journal or the prompt is damaged.
    """
    parser = command_parser(
        "prompt",
        description="Print the prompt that a node came from, as it was sent.",
        epilog=EPILOG,
    )
    parser.add_argument("run", metavar="RUN", help="a run folder, such as runs/first")
    parser.add_argument("node", metavar="NODE", help="a node, a candidate's id, or @expansion")
    parser.add_argument(
        "--search", metavar="NAME", help="problem/arm/seed; needed where several have that node"
    )
    options = parse(parser, arguments)
    if options is None:
        return DONE
    run = RunDir.open(options.run)
    state = fold(read_events(run.path))
    place = find(state, options.node, search=options.search)
    search = state.searches[place.search]
    sent = place.expansion.prompt
    waiting: Sequence[Message] = ()
    if sent is None:
        waiting = open_prompt(place.expansion, name=place.search, search=search, run=run)
    if place.expansion.calls and not waiting:
        _print_calls(place, run=run, as_json=options.json)
        return DONE
    if sent is None and not waiting:
        raise ConfigError(f"{place.search} {options.node}: {_why_no_prompt(place)}")
    messages = waiting if sent is None else messages_of(run.artefacts.get(sent.messages))
    sharing = sharing_of(search, place.expansion, run=run, messages=messages)
    if not options.json:
        sys.stdout.write(f"{_head(place, is_open=sent is None)}{transcript(messages)}")
        sys.stderr.write(f"{sharing}\n")
        return DONE
    write_json(
        sys.stdout,
        {
            **_named(place, run=run),
            "is_open": sent is None,
            "messages": [message._asdict() for message in messages],
            "sampling": None if sent is None else sent.sampling,
            "tokens": None if sent is None else sent.tokens,
            "estimated_tokens": sharing.tokens,
            "stable_tokens": sharing.stable_tokens,
            "shared_tokens": sharing.shared_tokens,
        },
    )
    return DONE


def _head(place: Place, *, is_open: bool) -> str:
    """Return the line above a prompt: its mode, and where it stands."""
    asked = place.expansion.asked
    node = "" if place.node is None else f", node {place.node}"
    state = ", open: not answered yet" if is_open else ""
    return f"##### {asked.mode}, @{asked.expansion} of {place.search}{node}{state} #####\n\n"


def _named(place: Place, *, run: RunDir) -> dict[str, Any]:
    """Return what a prompt is of, as plain values."""
    asked = place.expansion.asked
    return {
        "run": run.name,
        "search": place.search,
        "expansion": asked.expansion,
        "mode": asked.mode,
        "node": place.node,
        "candidate": place.candidate,
    }


def _print_calls(place: Place, *, run: RunDir, as_json: bool) -> None:
    """Print what the roles of an expansion were asked (pipeline=agents)."""
    if not as_json:
        text = calls_text(place.expansion, run=run)
        sys.stdout.write(f"{_head(place, is_open=False)}{text}")
        return
    calls = calls_json(place.expansion, run=run)
    write_json(sys.stdout, {**_named(place, run=run), "calls": calls})


def sharing_of(
    search: SearchState, expansion: ExpansionState, *, run: RunDir, messages: Sequence[Message]
) -> Sharing:
    """Return how a prompt relates to the others of its search, in the order they were asked.

    Args:
        search: of the expansion.
        expansion: that has a prompt.
        run: whose artefacts hold the prompts; one that is damaged is left out.
        messages: the prompt.
    """
    stable: Sequence[Message] | None = None
    before: Sequence[Message] | None = None
    shared: int | None = None
    tokens = num_prompts = 0
    for each in search.expansions.values():
        said = messages if each is expansion else _sent(each, run=run)
        if said is None:
            continue
        num_prompts += 1
        stable = said if stable is None else shared_prefix(stable, said)
        if each is expansion:
            tokens = prompt_tokens(said)
            shared = None if before is None else prompt_tokens(shared_prefix(before, said))
        before = said
    several = stable is not None and num_prompts > 1
    return Sharing(
        tokens=tokens,
        num_prompts=num_prompts,
        stable_tokens=prompt_tokens(stable) if stable is not None and several else None,
        shared_tokens=shared,
    )


def _sent(expansion: ExpansionState, *, run: RunDir) -> list[Message] | None:
    """Return an expansion's prompt; None where there is none that can be read."""
    if expansion.prompt is None:
        return None
    try:
        return messages_of(run.artefacts.get(expansion.prompt.messages))
    except StoreError:
        return None


def messages_of(text: str) -> list[Message]:
    """Return the messages of an artefact.

    Raises:
        StoreError: the text is no prompt.
    """
    try:
        return [Message(str(role), str(words)) for role, words in json.loads(text)]
    except (TypeError, ValueError) as error:
        raise StoreError("prompt artefact", f"not a list of messages: {error}") from error


def _why_no_prompt(place: Place) -> str:
    programmers = {made.programmer for made in place.expansion.candidates.values()} - {""}
    if programmers:
        return f"no prompt: its programmer ({', '.join(sorted(programmers))}) is not asked in words"
    return "no prompt is known yet, or its programmer is not asked in words"
