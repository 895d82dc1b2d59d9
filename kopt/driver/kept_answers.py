"""An answer as the journal has it: the prompt, then each completion with words and fault."""

from __future__ import annotations

from dataclasses import asdict

from kopt.data.answers import answer_to_text
from kopt.events import AnswerReceived, PromptSent
from kopt.expansion import Expansion
from kopt.identity import canonical_json
from kopt.ports import Answer, Completion, EventSink, TokenTrace


def keep_answer(
    answer: Answer, *, search: str, expansion: Expansion, sink: EventSink, first: int = 0
) -> None:
    """Journal an answer before it is used.

    Args:
        answer: as the programmer gave it.
        search: that it is for.
        expansion: that it is for.
        sink: of the run.
        first: completion that the journal does not have yet: an earlier driver may have died
            between two. From 1 on, it has the prompt too.

    Raises:
        StoreError: the journal cannot be written.
    """
    if answer.messages and not first:
        sink.append(
            search,
            PromptSent(
                expansion=expansion.ordinal,
                messages=sink.put_text(canonical_json(answer.messages)),
                sampling=dict(answer.sampling),
                tokens=sum(each.usage.tokens_in for each in answer.completions),
            ),
        )
    kept = sink.put_text(answer_to_text(answer))
    completions = answer.completions or (Completion(text=""),)
    for index, completion in enumerate(completions[first:], start=first):
        sink.append(
            search,
            AnswerReceived(
                expansion=expansion.ordinal,
                index=index,
                candidates=min(len(answer.candidates), expansion.num_candidates),
                answer=kept,
                text=sink.put_text(completion.text) if completion.text else None,
                finish=completion.finish,
                fault=completion.fault,
                tool_calls=[dict(call) for call in completion.tool_calls],
                tokens_in=completion.usage.tokens_in,
                tokens_out=completion.usage.tokens_out,
                cost_usd=completion.usage.cost_usd,
                exhausted=answer.exhausted,
                note=answer.note,
                trace=_kept_trace(completion.trace, sink),
                reasoning=sink.put_text(completion.reasoning) if completion.reasoning else None,
            ),
        )


def _kept_trace(trace: TokenTrace | None, sink: EventSink) -> str | None:
    return None if trace is None else sink.put_text(canonical_json(asdict(trace)))
