import pytest

from kopt.search.ledger import Ledger
from kopt.search.node import virtual_root
from kopt.search.rounds import Round


@pytest.fixture
def members(make_node):
    root = virtual_root()
    return [make_node(number, parent=root) for number in (1, 2, 3)]


def new_round(members, *, num_plans):
    return Round(members, num_plans=num_plans, first_ordinal=0, best=None)


def deal_all(a_round, ledger):
    """Ask everything that the round still has to deal; return (node id, plans) as asked."""
    dealt = []
    while a_round.num_missing > 0:
        member, num_plans = a_round.next_deal()
        ordinal = ledger.open(member.node_id, num_slots=num_plans)
        a_round.opened(ordinal, parent=member, ledger=ledger)
        dealt.append((member.node_id, num_plans))
    return dealt


@pytest.mark.parametrize(
    ("num_plans", "dealt"),
    [
        (1, [(1, 1)]),
        (2, [(1, 1), (2, 1)]),
        (3, [(1, 1), (2, 1), (3, 1)]),
        (4, [(1, 2), (2, 1), (3, 1)]),
        (8, [(1, 3), (2, 3), (3, 2)]),
    ],
)
def test_plans_are_shared_evenly_and_those_left_over_go_to_the_first(members, num_plans, dealt):
    assert deal_all(new_round(members, num_plans=num_plans), Ledger()) == dealt


def test_a_cancelled_plan_is_dealt_again(members):
    a_round, ledger = new_round(members, num_plans=4), Ledger()
    deal_all(a_round, ledger)
    ledger.settle(0, index=1, state="told")
    ledger.settle(0, index=0, state="cancelled")
    ledger.settle(1, index=0, state="cancelled")
    for member in members:
        a_round.recount(member, ledger=ledger)
    assert a_round.num_missing == 2
    # one each is left at 1 and 3, none at 2: it gets one, and then the first of all with one
    assert deal_all(a_round, ledger) == [(2, 1), (1, 1)]


def test_a_closed_member_leaves_its_plans_to_the_others(members):
    members[0].closed = True
    assert deal_all(new_round(members, num_plans=4), Ledger()) == [(2, 2), (3, 2)]


def test_a_round_of_closed_members_has_no_deal(members):
    for member in members:
        member.closed = True
    assert new_round(members, num_plans=4).next_deal() is None


def test_a_thousand_plans_are_dealt_by_turns(members):
    assert deal_all(new_round(members, num_plans=1000), Ledger()) == [(1, 334), (2, 333), (3, 333)]
