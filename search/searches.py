"""The table of searches, and how one is made from its config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kopt.registry import Registry
from kopt.reward import RewardRule
from kopt.search.base import Search
from kopt.search.config import SearchConfig

SEARCHES: Registry[Search] = Registry("search", entry_point_group="kopt.searches")
"""Name to factory(config, *, rule, seed). A third party registers `package/name` in the group."""


def create_search(config: SearchConfig, *, rule: RewardRule, seed: int) -> Search:
    """Return a new search.

    Args:
        config: the section of the policy; its `kind` names the factory.
        rule: how a verdict becomes a reward.
        seed: the search's seed; every expansion's seed derives from it.

    Raises:
        ConfigError: no policy of that name.
    """
    return SEARCHES.create(config.kind, config, rule=rule, seed=seed)


def restore_search(
    snapshot: Mapping[str, Any], *, config: SearchConfig, rule: RewardRule, seed: int
) -> Search:
    """Return a search that goes on where the snapshot was taken.

    Raises:
        ConfigError: no policy of that name.
        ValueError: the snapshot is of another policy, seed or schema.
    """
    search = create_search(config, rule=rule, seed=seed)
    search.restore(snapshot)
    return search
