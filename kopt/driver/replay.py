"""The tree as a fold over the journal: rebuilt for `resume`, rebuilt and compared for `replay`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter

from kopt.data.fold import ExpansionState, RunState, SearchState
from kopt.driver.agent_desk import place_of
from kopt.driver.asked import asked_event, asked_expansion
from kopt.driver.task import SearchSpec, SearchTask, Unfinished
from kopt.errors import StoreError
from kopt.evaluation import from_json
from kopt.events import ExpansionAsked, ExpansionCancelled, SearchExtended, Told
from kopt.expansion import Expansion
from kopt.problem import Problem
from kopt.reward import RewardRule, with_energy
from kopt.search.base import Search
from kopt.search.config import SearchConfig
from kopt.search.searches import create_search
from kopt.search.telling import tell_candidate

_SEARCH_CONFIG: TypeAdapter[SearchConfig] = TypeAdapter(SearchConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One search, rebuilt from the journal alone."""

    name: str
    tree: Search
    ended: str | None
    """Reason it ended; None where it was interrupted."""


def replay(state: RunState) -> list[Replayed]:
    """Build every tree of a run again and check it against the journal, step by step.

    Raises:
        StoreError: a tree asks for something else, or gives another node or reward, than the
            journal says; the text names the search and the step.
    """
    replayed = []
    for name, search in state.searches.items():
        tree = apply_operations(tree_of(search), search, name=name)
        ended = search.ended.reason if search.ended else None
        replayed.append(Replayed(name=name, tree=tree, ended=ended))
    return replayed


def tree_of(search: SearchState, policy_config: dict[str, Any] | None = None) -> Search:
    """Return a new tree of the policy, reward rule and seed that the journal names.

    Args:
        search: as journalled.
        policy_config: a later config than the one it was started with; None for that one.

    Raises:
        ConfigError: the policy is not known here (a plug-in that is not installed).
    """
    config = policy_config or search.started.policy_config
    return create_search(
        _SEARCH_CONFIG.validate_python(config["search"]),
        rule=RewardRule(**config["reward"]),
        seed=search.started.seed,
    )


def apply_operations(tree: Search, search: SearchState, *, name: str) -> Search:
    """Take a new tree through everything the journalled one went through, and return the last.

    An extension goes on with a tree of the new config, restored from the old one's snapshot.

    Raises:
        StoreError: as `replay`.
    """
    for step, operation in enumerate(search.operations):
        match operation:
            case ExpansionAsked():
                asked = [asked_event(expansion) for expansion in tree.ask(1)]
                if asked != [operation]:
                    raise _divergence(name, step, f"expected {operation}, found {asked}")
            case Told():
                expansion = search.expansions[operation.expansion]
                made = expansion.candidates[operation.index]
                told = tell_candidate(
                    tree,
                    operation.expansion,
                    operation.index,
                    candidate=made.candidate,
                    verdict=with_energy(
                        from_json(expansion.verdicts[operation.index]).verdict,
                        operation.energy_reduction,
                    ),
                    strategy=made.strategy,
                )
                if (told.node, told.reward) != (operation.node, operation.reward):
                    raise _divergence(name, step, f"expected {operation}, found {told}")
            case ExpansionCancelled():
                tree.cancel(operation.expansion, exhausted=operation.exhausted)
            case SearchExtended():
                tree = restored(tree, search, operation.policy_config)
    return tree


def restored(tree: Search, search: SearchState, policy_config: dict[str, Any]) -> Search:
    """Return a tree of another config (a larger budget) that goes on where this one stands."""
    successor = tree_of(search, policy_config)
    successor.restore(tree.snapshot())
    return successor


def resumed_task(spec: SearchSpec, search: SearchState) -> SearchTask:
    """Return the task that goes on with a search of an earlier run.

    Where the spec's config differs from the journal's last one, the search is extended: it goes on
    under the new config, ended or not.

    Args:
        spec: of the search, as it is to go on.
        search: what the journal knows.

    Raises:
        StoreError: as `replay`.
    """
    tree = apply_operations(tree_of(search), search, name=spec.name)
    extension = None
    if _plain_config(spec.policy_config) != _plain_config(_last_config(search)):
        extension = SearchExtended(policy_config=spec.policy_config)
        tree = restored(tree, search, spec.policy_config)
    ended = search.ended is not None and extension is None
    task = SearchTask(
        spec=spec,
        tree=tree,
        started=True,
        ended=ended,
        failed=search.ended.failed if ended and search.ended is not None else False,
        extension=extension,
        unfinished=() if ended else tuple(_unfinished(search)),
        unlearned=() if ended else tuple(_unlearned(search)),
    )
    if not ended:
        for operation in search.operations:
            if isinstance(operation, ExpansionAsked):
                known = search.expansions[operation.expansion].memory_known
                task.num_candidates = operation.n
                task.recollection.asked(asked_expansion(operation), updates=known)
            elif isinstance(operation, Told):
                expansion = search.expansions[operation.expansion]
                evaluation = from_json(expansion.verdicts[operation.index])
                task.remember(expansion.candidates[operation.index], evaluation)
                task.empty = 0
            elif isinstance(operation, ExpansionCancelled):
                # A setback of the machinery is over with its sitting; answers without code are not.
                expansion = search.expansions[operation.expansion]
                if expansion.answered is not None and not expansion.candidates:
                    task.empty = 0 if operation.exhausted else task.empty + 1
        for update in search.memory:
            task.recollection.learned(update)
        task.profiles.update(search.profiles)
        for expansion in search.expansions.values():
            task.calls.update((place_of(call), call) for call in expansion.calls)
        task.reference = search.reference
    return task


def _plain_config(policy_config: dict[str, Any]) -> dict[str, Any]:
    """Return a config with all its keys: an older journal lacks those that came later."""
    section = _SEARCH_CONFIG.validate_python(policy_config["search"])
    rule = RewardRule(**policy_config["reward"])
    return {**policy_config, "search": section.model_dump(mode="json"), "reward": asdict(rule)}


def _last_config(search: SearchState) -> dict[str, Any]:
    configs = [
        operation.policy_config
        for operation in search.operations
        if isinstance(operation, SearchExtended)
    ]
    return configs[-1] if configs else search.started.policy_config


def spec_of(search: SearchState, problem: Problem) -> SearchSpec:
    """Return the spec that a journalled search was started from."""
    started = search.started
    return SearchSpec(
        problem=problem,
        arm=started.arm,
        seed=started.seed,
        policy=started.policy,
        policy_config=started.policy_config,
    )


def _unfinished(search: SearchState) -> list[Unfinished]:
    return [
        Unfinished(
            expansion=asked_expansion(expansion.asked),
            answer=expansion.answered.answer if expansion.answered else None,
            num_completions=len(expansion.answers),
            made=frozenset(expansion.candidates),
            verdicts={
                index: from_json(evaluation) for index, evaluation in expansion.verdicts.items()
            },
            told=frozenset(expansion.told),
        )
        for expansion in search.expansions.values()
        if _goes_on(expansion)
    ]


def _unlearned(search: SearchState) -> Iterator[tuple[Expansion, str]]:
    """Yield the expansions that are over and not in the memory, with their answers' artefacts."""
    learned = {update.expansion for update in search.memory}
    for ordinal, expansion in search.expansions.items():
        answered = expansion.answered
        if answered is not None and ordinal not in learned and not _goes_on(expansion):
            yield asked_expansion(expansion.asked), answered.answer


def _goes_on(expansion: ExpansionState) -> bool:
    """Whether the driver died before it was done with this expansion."""
    if expansion.cancelled is not None:
        return False
    answered = expansion.answered
    closes_node = answered is not None and answered.exhausted
    return expansion.is_open or closes_node


def _divergence(name: str, step: int, why: str) -> StoreError:
    return StoreError(f"journal of {name}", f"step {step} does not replay: {why}")
