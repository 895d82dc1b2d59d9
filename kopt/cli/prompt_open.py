"""`kopt prompt` where nobody has answered yet: prompts that lie open in a run's mailbox.

The journal has a prompt once it is answered; until then it is the letter that lies in the folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from kopt.actors.programmers.config import MailboxConfig
from kopt.agent_call import AGENTS, CallPlace
from kopt.data.fold import ExpansionState, SearchState
from kopt.data.rundir import RunDir
from kopt.driver.asked import asked_expansion
from kopt.errors import StoreError
from kopt.ports import Message


def open_prompt(
    expansion: ExpansionState, *, name: str, search: SearchState, run: RunDir
) -> tuple[Message, ...]:
    """Return the messages of the expansion's prompt that lies open; none where none does.

    Args:
        expansion: that is not answered.
        name: of its search.
        search: of the expansion.
        run: with its manifest, which says where its mailbox is.

    Raises:
        StoreError: the manifest is damaged, or the letter cannot be read.
    """
    config = _mailbox(run)
    if config is None or not expansion.is_open:
        return ()
    # It names whoever answers files, with all that they read: only where there is a mailbox.
    from kopt.actors.programmers.postbox.folder import MailFolder
    from kopt.actors.programmers.postbox.letter import messages_of

    folder = MailFolder(config.place(run.path))
    for letter_id in _letter_ids(expansion, name=name, search=search, run=run.identity()):
        try:
            letter = folder.prompt(letter_id) if folder.is_open(letter_id) else None
        except OSError as error:
            raise StoreError(f"prompt {letter_id}", str(error)) from error
        if letter is not None:
            return messages_of(letter)
    return ()


def _mailbox(run: RunDir) -> MailboxConfig | None:
    if not run.manifest_path.is_file():
        return None
    config: Mapping[str, Any] = run.read_manifest().get("config") or {}
    section = config.get("programmer")
    if not isinstance(section, Mapping) or section.get("kind") != "mailbox":
        return None
    try:
        return MailboxConfig.model_validate(section)
    except ValueError as error:
        raise StoreError("manifest", f"its programmer is no mailbox: {error}") from error


def _letter_ids(
    expansion: ExpansionState, *, name: str, search: SearchState, run: str
) -> Iterator[str]:
    """Yield what the prompt may be called: the expansion's own, or a role's next call."""
    from kopt.actors.programmers.postbox.letter import call_place_id, place_id

    started = search.started
    asked = asked_expansion(expansion.asked)
    yield place_id(
        asked, problem=started.problem, problem_name=started.problem_name, search=name, run=run
    )
    turns = Counter((call.agent, call.slot) for call in expansion.calls)
    for slot in range(asked.num_candidates):
        for agent in AGENTS:
            yield call_place_id(
                CallPlace(asked.ordinal, agent, slot, turns[agent, slot]),
                problem=started.problem,
                problem_name=started.problem_name,
                search=name,
                run=run,
            )
