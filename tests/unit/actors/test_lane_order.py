"""Who is lent next and who is served next, against a walk over all of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kopt.actors.lane_order import FreeWorkers, LowestFirst, Waiting

DEPTH = 2
NUMBERS = st.integers(0, 5)
KEYS = st.sampled_from(["a", "b", "c"])
STATES = st.tuples(NUMBERS, st.integers(0, DEPTH), st.booleans(), st.one_of(st.none(), KEYS))


@settings(max_examples=200)
@given(st.lists(st.tuples(STATES, KEYS), max_size=40))
def test_the_worker_lent_is_the_one_that_a_walk_over_all_would_find(steps):
    free = FreeWorkers(depth=DEPTH)
    known = {}
    for (number, calls, has_actor, last_key), key in steps:
        free.put(number, calls=calls, has_actor=has_actor, last_key=last_key)
        known[number] = (calls, has_actor, last_key)

        def order(number: int, key: str = key) -> tuple[int, bool, bool, bool, int]:
            calls, has_actor, last_key = known[number]
            return calls, not has_actor, last_key != key, last_key is not None, number

        expected = min((n for n in known if known[n][0] < DEPTH), key=order, default=None)
        assert free.choose(key) == expected


def test_a_free_worker_with_warm_caches_comes_before_one_without():
    free = FreeWorkers(depth=1)
    free.put(0, calls=0, has_actor=True, last_key="a")
    free.put(1, calls=0, has_actor=True, last_key=None)
    free.put(2, calls=0, has_actor=True, last_key="b")
    assert free.choose("b") == 2
    assert free.choose("c") == 1  # it has no caches to lose
    free.put(1, calls=1, has_actor=True, last_key="c")
    assert free.choose("c") == 0


def test_numbers_that_come_and_go_are_held_once():
    numbers = LowestFirst()
    numbers.add(2)
    for _ in range(1000):
        numbers.add(1)
        numbers.remove(1)
    assert numbers.lowest() == 2
    assert len(numbers) == 1
    assert len(numbers._heap) <= 2


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(["add", "take", "leave"]), KEYS, NUMBERS)))
def test_waiters_are_taken_by_key_and_then_by_age(steps):
    waiting: Waiting[int] = Waiting()
    known: list[tuple[str, int]] = []
    for what, key, place in steps:
        if what == "add":
            known.append((key, waiting.add(key, len(known))))
        elif what == "leave" and place < len(known):
            _, ticket = known.pop(place)
            assert waiting.leave(ticket)
            assert not waiting.leave(ticket)
        elif what == "take":
            waiting.settle(0, key)
            found = waiting.take(worker=0)
            expected = next((each for each in known if each[0] == key), (known or [None])[0])
            assert (found is None) == (expected is None)
            if expected is not None:
                assert found is not None
                assert found[0] == expected[0]
                known.remove(expected)
        assert len(waiting) == len(known)


def test_whoever_takes_for_no_worker_is_given_the_first():
    waiting: Waiting[str] = Waiting()
    waiting.add("a", "first")
    waiting.add("b", "second")
    waiting.settle(7, "b")
    assert waiting.take(worker=None) == ("a", "first")
    assert waiting.take(worker=3) == ("b", "second")
    assert waiting.take(worker=3) is None


def test_a_worker_begins_with_what_no_other_is_warm_for():
    waiting: Waiting[str] = Waiting(keys=2)
    for key in ("a", "a", "b", "a", "b", "c"):
        waiting.add(key, key)
    waiting.settle(0, "a")
    # Worker 1 leaves `a` to worker 0, stays with `b`, goes on to `c`, and stands idle for nobody.
    taken = []
    while (found := waiting.take(worker=1)) is not None:
        waiting.settle(1, found[0])
        taken.append(found[0])
    assert taken == ["b", "b", "c", "a", "a", "a"]


def test_of_its_own_keys_a_worker_takes_whoever_came_first():
    waiting: Waiting[int] = Waiting(keys=2)
    waiting.settle(0, "a")
    waiting.settle(0, "b")
    for number, key in enumerate(("c", "a", "b", "a")):
        waiting.add(key, number)
    assert waiting.held_by(0) == (2, 3)
    assert [waiting.take(worker=0) for _ in range(4)] == [("a", 1), ("b", 2), ("a", 3), ("c", 0)]


def test_what_a_worker_is_no_longer_warm_for_is_anybody_s():
    waiting: Waiting[str] = Waiting(keys=2)
    for key in ("a", "b", "c"):
        waiting.settle(0, key)  # two are kept: `a` is gone
    for key in ("c", "b", "a"):
        waiting.add(key, key)
    assert (waiting.homes("a"), waiting.homes("b")) == (frozenset(), {0})
    assert waiting.take(worker=1) == ("a", "a")
    waiting.unsettle(0)  # its actor died
    assert waiting.take(worker=1) == ("c", "c")


def test_what_is_taken_up_ahead_drives_no_key_out():
    waiting: Waiting[str] = Waiting(keys=2)
    for key in ("a", "b", "c"):
        waiting.take_up(0, key)
    assert (waiting.homes("a"), waiting.homes("b"), waiting.homes("c")) == ({0}, {0}, frozenset())
