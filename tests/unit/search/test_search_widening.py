import pytest

from kopt.search.node import virtual_root
from kopt.search.widening import Widening

PAPER = Widening(c_pw_failed=2.0, c_pw_successful=3.0, alpha=0.5)


@pytest.fixture
def node(make_node):
    """Makes a node of so many visits, children and pending slots."""

    def make(*, status, visits, pending_here=0, children=0):
        made = make_node(
            status=status, visits=visits, pending_here=pending_here, in_flight=pending_here
        )
        made.children = [virtual_root() for _ in range(children)]
        return made

    return make


@pytest.mark.parametrize(
    ("status", "visits", "most"),
    # C_pw * sqrt(N): a node may expand while it has fewer.
    [("root", 4, 4), ("failed", 4, 4), ("correct", 4, 6), ("failed", 9, 6), ("correct", 100, 30)],
)
def test_the_gate_shuts_at_c_pw_times_the_root_of_the_visits(node, status, visits, most):
    assert PAPER.is_open(node(status=status, visits=visits, children=most - 1))
    assert not PAPER.is_open(node(status=status, visits=visits, children=most))


def test_pending_slots_count_as_children_and_as_visits(node):
    # 4 pending at a failed leaf: 4 children against 2 * sqrt(1 + 4) = 4.47; 5 against 4.90.
    assert PAPER.is_open(node(status="failed", visits=1, pending_here=4))
    assert not PAPER.is_open(node(status="failed", visits=1, pending_here=5))


def test_the_gate_of_an_unvisited_root_is_shut():
    assert not PAPER.is_open(virtual_root())


def test_alpha_zero_allows_a_fixed_number_of_children(node):
    fixed = Widening(c_pw_failed=2.0, c_pw_successful=3.0, alpha=0.0)
    assert fixed.is_open(node(status="failed", visits=1000, children=1))
    assert not fixed.is_open(node(status="failed", visits=1000, children=2))
