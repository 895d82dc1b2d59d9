"""A run whose journal lacks a setting that came later goes on as it was, not as another search."""

from __future__ import annotations

from dataclasses import replace

from kopt.data.fold import fold
from kopt.driver.replay import resumed_task
from kopt.events import SearchStarted
from kopt.search.config import MctsConfig
from kopt.testing.fakes import MemorySink
from kopt.testing.small_fleet import small_tasks

CONFIG = MctsConfig(iterations=10, candidates=2)


def sink_without(key: str) -> MemorySink:
    (task,) = small_tasks(CONFIG)
    started = task.spec.started()
    search = {k: v for k, v in started.policy_config["search"].items() if k != key}
    sink = MemorySink()
    sink.append(
        task.spec.name,
        replace(started, policy_config={**started.policy_config, "search": search}),
    )
    return sink


def test_a_setting_that_the_journal_lacks_has_its_default() -> None:
    sink = sink_without("seeds")
    (event,) = sink.bodies()
    assert isinstance(event, SearchStarted)
    assert "seeds" not in event.policy_config["search"]
    (search,) = fold(sink.records).searches.values()
    (task,) = small_tasks(CONFIG)
    assert resumed_task(task.spec, search).extension is None


def test_another_budget_still_extends_it() -> None:
    (search,) = fold(sink_without("seeds").records).searches.values()
    (task,) = small_tasks(CONFIG.model_copy(update={"iterations": 20}))
    extension = resumed_task(task.spec, search).extension
    assert extension is not None
    assert extension.policy_config["search"]["iterations"] == 20
