"""`kopt prompt`: the prompt of a node as it was sent, from the run's journal."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE
from kopt.cli.output import write_json
from kopt.cli.prompt_calls import calls_json, calls_text
from kopt.data.fold import ExpansionState, RunState, SearchState, fold
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
  @7        the expansion that was asked as number 7, whatever became of it

examples:
  kopt prompt runs/first 12
  kopt prompt runs/first @0 --search builtin/softmax/default/0 --json"""

_CANDIDATE = re.compile(r"[0-9a-f]{4,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An expansion of a run, and the node of it that was asked for."""

    search: str
    expansion: ExpansionState
    node: int | None = None
    candidate: str | None = None

    @property
    def expansion_name(self) -> str | None:
        """How the expansion is named; None for a node of it."""
        return f"@{self.expansion.asked.expansion}" if self.candidate is None else None

    @property
    def node_name(self) -> str | None:
        """How the node is named; None where there is none."""
        return None if self.node is None else str(self.node)


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
    sent = place.expansion.prompt
    if place.expansion.calls:
        _print_calls(place, run=run, as_json=options.json)
        return DONE
    if sent is None:
        raise ConfigError(f"{place.search} {options.node}: {_why_no_prompt(place)}")
    messages = messages_of(run.artefacts.get(sent.messages))
    sharing = sharing_of(state.searches[place.search], place.expansion, run=run)
    if not options.json:
        sys.stdout.write(transcript(messages))
        sys.stderr.write(f"{sharing}\n")
        return DONE
    write_json(
        sys.stdout,
        {
            "run": run.name,
            "search": place.search,
            "expansion": place.expansion.asked.expansion,
            "mode": place.expansion.asked.mode,
            "node": place.node,
            "candidate": place.candidate,
            "messages": [message._asdict() for message in messages],
            "sampling": sent.sampling,
            "tokens": sent.tokens,
            "estimated_tokens": sharing.tokens,
            "stable_tokens": sharing.stable_tokens,
            "shared_tokens": sharing.shared_tokens,
        },
    )
    return DONE


def _print_calls(place: Place, *, run: RunDir, as_json: bool) -> None:
    """Print what the roles of an expansion were asked (pipeline=agents)."""
    if not as_json:
        sys.stdout.write(calls_text(place.expansion, run=run))
        return
    write_json(
        sys.stdout,
        {
            "run": run.name,
            "search": place.search,
            "expansion": place.expansion.asked.expansion,
            "mode": place.expansion.asked.mode,
            "node": place.node,
            "candidate": place.candidate,
            "calls": calls_json(place.expansion, run=run),
        },
    )


def find(state: RunState, words: str, *, search: str | None) -> Place:
    """Return the place that a user's words name.

    A number is a node's before it is the start of an id; of a candidate that was written several
    times, the first time counts.

    Args:
        state: of the run.
        words: a node, the first digits of a candidate's id, or @expansion.
        search: its name; None where it may be any.

    Raises:
        ConfigError: there is none, or several are meant.
    """
    if search is not None and search not in state.searches:
        raise ConfigError(f"no search {search!r}; there are: {', '.join(state.searches)}")
    places = [
        place
        for name in ([search] if search is not None else state.searches)
        for place in _places(name, state.searches[name])
    ]
    counted = [place for place in places if words in (place.expansion_name, place.node_name)]
    if len({place.search for place in counted}) > 1:
        found = ", ".join(dict.fromkeys(place.search for place in counted))
        raise ConfigError(f"{words!r} is in several searches; add --search NAME, one of: {found}")
    if counted:
        return counted[0]
    named = [place for place in places if place.candidate and place.candidate.startswith(words)]
    if not named or not _CANDIDATE.fullmatch(words):
        within = f" in {search}" if search is not None else ""
        hint = "; node 0 is ROOT, which nobody wrote" if words == "0" else ""
        raise ConfigError(f"no node, candidate or @expansion {words!r}{within}{hint}")
    ids = list(dict.fromkeys(place.candidate for place in named))
    if len(ids) > 1:
        found = ", ".join(str(each)[:12] for each in ids[:4])
        raise ConfigError(f"{words!r} begins {len(ids)} ids ({found}, …); give more digits")
    return named[0]


def sharing_of(search: SearchState, expansion: ExpansionState, *, run: RunDir) -> Sharing:
    """Return how a prompt relates to the others of its search, in the order they were sent.

    Args:
        search: of the expansion.
        expansion: that has a prompt.
        run: whose artefacts hold the prompts; one that is damaged is left out.
    """
    stable: Sequence[Message] | None = None
    before: Sequence[Message] | None = None
    shared: int | None = None
    tokens = num_prompts = 0
    for each in search.expansions.values():
        if each.prompt is None:
            continue
        try:
            messages = messages_of(run.artefacts.get(each.prompt.messages))
        except StoreError:
            continue
        num_prompts += 1
        stable = messages if stable is None else shared_prefix(stable, messages)
        if each is expansion:
            tokens = prompt_tokens(messages)
            shared = None if before is None else prompt_tokens(shared_prefix(before, messages))
        before = messages
    several = stable is not None and num_prompts > 1
    return Sharing(
        tokens=tokens,
        num_prompts=num_prompts,
        stable_tokens=prompt_tokens(stable) if stable is not None and several else None,
        shared_tokens=shared,
    )


def messages_of(text: str) -> list[Message]:
    """Return the messages of an artefact.

    Raises:
        StoreError: the text is no prompt.
    """
    try:
        return [Message(str(role), str(words)) for role, words in json.loads(text)]
    except (TypeError, ValueError) as error:
        raise StoreError("prompt artefact", f"not a list of messages: {error}") from error


def _places(name: str, search: SearchState) -> Iterator[Place]:
    """Yield every place of a search: each expansion, and each of its candidates."""
    for expansion in search.expansions.values():
        yield Place(search=name, expansion=expansion)
        for made in expansion.candidates.values():
            told = expansion.told.get(made.index)
            yield Place(
                search=name,
                expansion=expansion,
                node=told.node if told is not None else None,
                candidate=made.candidate,
            )


def _why_no_prompt(place: Place) -> str:
    programmers = {made.programmer for made in place.expansion.candidates.values()} - {""}
    if programmers:
        return f"no prompt: its programmer ({', '.join(sorted(programmers))}) is not asked in words"
    return "no prompt was sent yet, or its programmer is not asked in words"
