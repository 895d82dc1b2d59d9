import gc
from contextlib import suppress

from kopt.cli.collector import NEW_OBJECTS, calm_collector


def test_the_collector_is_as_before_afterwards_whatever_happens():
    before = gc.get_threshold()
    with suppress(KeyError), calm_collector():
        assert gc.get_threshold() == (NEW_OBJECTS, *before[1:])
        assert gc.get_freeze_count() > 0
        raise KeyError
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_cycles_that_are_made_meanwhile_are_still_collected():
    with calm_collector():
        for _ in range(3 * NEW_OBJECTS):
            loop: list[object] = []
            loop.append(loop)
        collected = gc.get_stats()[0]["collected"]
    assert collected > NEW_OBJECTS
