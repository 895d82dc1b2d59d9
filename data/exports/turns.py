"""A turn: what an author was told, and what it answered, in the form that chat templates take.

Where nobody was asked in words (the rewriter), the prompt is built again from what the journal
knows of the expansion, and the answer written in the form that prompts ask for. Such turns say so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, cast

from kopt.candidate import Candidate, Language
from kopt.data.corpus.gathering import GatheredSearch
from kopt.data.corpus.run_texts import Chat, RunTexts
from kopt.data.corpus.trial_row import TrialRow
from kopt.evaluation import from_json
from kopt.expansion import Expansion, Mode
from kopt.ladder import LadderName
from kopt.ports import Attempt, Terms, WriteRequest
from kopt.prompts.builder import build
from kopt.prompts.excerpts import fenced

Origin = Literal["sent", "rebuilt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One exchange with an author."""

    prompt: Chat
    """System and user message."""
    completion: str
    origin: Origin
    """`sent`: as a model or a person read it; `rebuilt`: nobody was asked in words."""


class Turns:
    """The turns of one search."""

    def __init__(self, search: GatheredSearch, rows: list[TrialRow], *, texts: RunTexts) -> None:
        """Take a search with its rows, and the texts of its run."""
        self._search = search
        self._texts = texts
        self._target = texts.target()
        self.by_node = {row.node: row for row in rows if row.node is not None}
        self._by_candidate: dict[str, TrialRow] = {}
        for row in rows:
            if row.candidate is not None:
                self._by_candidate.setdefault(row.candidate, row)

    def turn(self, row: TrialRow) -> Turn | None:
        """Return the turn of a row; None where a text of it is missing."""
        if row.prompt is not None:
            prompt = self._texts.chat(row.prompt)
            words = None if row.answer is None else row.answer.get("text")
            completion = None if words is None else self._texts.text(words)
            if not prompt or not completion:
                return None
            return Turn(prompt=prompt, completion=completion, origin="sent")
        return self._rebuilt(row)

    def lineage(self, row: TrialRow) -> list[TrialRow] | None:
        """Return the rows from ROOT's child to this one; None where one of them is missing."""
        found = [self.by_node.get(node) for node in row.lineage]
        if any(each is None for each in found):
            return None
        return [*cast("list[TrialRow]", found), row]

    def source(self, row: TrialRow) -> str | None:
        """Return the candidate's module; None where there is none, or it is lost."""
        return None if row.made is None else self._texts.text(row.made["source"])

    def parent(self, row: TrialRow) -> TrialRow | None:
        """Return the row of what it was made from; None for a fresh one."""
        return self._by_candidate.get(row.expansion["parent"] or "")

    def _rebuilt(self, row: TrialRow) -> Turn | None:
        made, source = row.made, self.source(row)
        prompt = None if made is None or source is None else self._rebuilt_prompt(row)
        if made is None or source is None or prompt is None:
            return None
        strategy = " ".join(self._texts.redactor.text(made["strategy"]).split())
        block = fenced(source, info="python")
        completion = f"strategy: {strategy}\nlanguage: {made['language']}\n\n{block}"
        return Turn(prompt=prompt, completion=completion, origin="rebuilt")

    def _rebuilt_prompt(self, row: TrialRow) -> Chat | None:
        started, asked = self._search.started, row.expansion
        problem = self._texts.problem(started["problem"])
        if problem is None or self._target is None:
            return None
        parent = self._attempt(asked["parent"])
        if asked["parent"] is not None and parent is None:
            return None
        judged = row.judged
        terms = Terms()
        if judged is not None:
            terms = Terms(ladder=cast("LadderName", judged.ladder), track=_track(judged.track))
        request = WriteRequest(
            problem=problem,
            target=self._target,
            search=self._search.name,
            arm=started["arm"],
            seed=started["seed"],
            expansion=Expansion(
                ordinal=asked["expansion"],
                parent_node=asked["parent_node"],
                parent=asked["parent"],
                mode=cast("Mode", asked["mode"]),
                num_candidates=asked["n"],
                first_child=asked["first_child"],
                seed=asked["seed"],
            ),
            parent=parent,
            terms=terms,
        )
        redact = self._texts.redactor.text
        return [{"role": role, "content": redact(text)} for role, text in build(request)]

    def _attempt(self, candidate: str | None) -> Attempt | None:
        row = self._by_candidate.get(candidate or "")
        if row is None or row.made is None or row.judged is None:
            return None
        source = self.source(row)
        if source is None:
            return None
        try:
            evaluation = from_json(json.loads(row.judged.text))
        except (ValueError, KeyError, TypeError):
            return None
        made = row.made
        return Attempt(
            candidate=Candidate(
                source=source,
                language=cast("Language", made["language"]),
                parent=made["parent"],
                strategy=made["strategy"],
                programmer=made["programmer"],
            ),
            evaluation=evaluation,
        )


def _track(track: str) -> Literal["kernels", "anything"]:
    return "kernels" if track == "kernels" else "anything"
