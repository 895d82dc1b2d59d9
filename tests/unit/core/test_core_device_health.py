"""When a device is given up: losses in a row, memory errors, drift against the others."""

from __future__ import annotations

import pytest

from kopt.device_health import DRIFTED_PROGRAMS, LOSSES_IN_A_ROW, DeviceFacts, HealthBook


def facts(device: str, *, memory_errors: int | None = None) -> DeviceFacts:
    return DeviceFacts(device=device, host="node", name="H200", memory_errors=memory_errors)


def book_of(*devices: str) -> HealthBook:
    book = HealthBook()
    for device in devices:
        assert book.met(facts(device)) is None
    return book


def test_losses_in_a_row_are_enough_and_an_answer_in_between_is_not() -> None:
    book = book_of("a")
    for _ in range(LOSSES_IN_A_ROW - 1):
        assert book.lost("a", "died") is None
    book.answered("a")
    for _ in range(LOSSES_IN_A_ROW - 1):
        assert book.lost("a", "died") is None
    given_up = book.lost("a", "hung")
    assert given_up is not None
    assert given_up.reason == "its worker was lost 3 times in a row, the last one hung"
    assert str(given_up).startswith("H200 (a) of node is in quarantine: ")


def test_what_was_given_up_is_still_given_up_when_another_worker_meets_it() -> None:
    book = book_of("a")
    for _ in range(LOSSES_IN_A_ROW):
        book.lost("a", "died")
    again = book.met(facts("a"))
    assert [again] == book.quarantined()
    assert book.lost("a", "died") is None  # it has been said


@pytest.mark.parametrize(
    ("before", "after", "count"), [(2, 5, 3), (0, 1, 1), (4, 4, 0), (None, 7, 0), (7, None, 0)]
)
def test_memory_errors_count_from_when_the_device_was_met(
    before: int | None, after: int | None, count: int
) -> None:
    book = HealthBook()
    assert book.met(facts("a", memory_errors=before)) is None  # of before our time
    found = book.met(facts("a", memory_errors=after))
    if not count:
        assert found is None
    else:
        assert found is not None
        assert found.reason == f"{count} memory error(s) that it could not correct (ECC)"


def test_a_device_that_is_slower_in_most_of_what_the_others_time_too_is_given_up() -> None:
    book = book_of("a", "b", "c")
    for number in range(DRIFTED_PROGRAMS):
        for healthy in ("a", "b"):
            assert book.timed(healthy, program=f"p{number}", time_us=100.0) is None
    assert book.timed("c", program="p0", time_us=120.0) is None
    assert book.timed("c", program="p1", time_us=130.0) is None
    found = book.timed("c", program="p2", time_us=125.0)
    assert found is not None
    # The median of 1.20, 1.30 and 1.25.
    assert found.reason == "A/A drift: 3 references take 1.25x their time on other devices"
    assert found.device == "c"


def test_a_device_alone_or_odd_in_few_of_many_programs_is_kept() -> None:
    alone = book_of("a")
    for number in range(10):
        assert alone.timed("a", program=f"p{number}", time_us=100.0 + 50 * number) is None
    many = book_of("a", "b")
    for number in range(8):
        many.timed("a", program=f"p{number}", time_us=100.0)
        # Slower in four of eight: half is not most.
        slower = number >= 4
        assert many.timed("b", program=f"p{number}", time_us=150.0 if slower else 100.0) is None
    assert many.quarantined() == []


def test_what_was_slow_once_and_is_not_any_more_does_not_count() -> None:
    book = book_of("a", "b")
    for number in range(2):
        book.timed("a", program=f"p{number}", time_us=100.0)
        book.timed("b", program=f"p{number}", time_us=200.0)
    for _ in range(3):  # the median of 200, 100, 100 and 100
        book.timed("b", program="p0", time_us=100.0)
    book.timed("a", program="p2", time_us=100.0)
    assert book.timed("b", program="p2", time_us=200.0) is None
    assert book.quarantined() == []
