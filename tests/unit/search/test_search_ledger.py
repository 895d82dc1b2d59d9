import pytest

from kopt.search.ledger import Ledger


def test_slots_are_numbered_in_the_order_asked():
    ledger = Ledger()
    assert [ledger.open(0, num_slots=2), ledger.open(1, num_slots=3)] == [0, 1]
    assert [ledger.expansion(ordinal).first_slot for ordinal in (0, 1)] == [0, 2]
    assert ledger.num_pending == 5


def test_a_slot_is_settled_once():
    ledger = Ledger()
    ledger.open(0, num_slots=3)
    ledger.settle(0, index=1, state="told")
    ledger.settle(0, index=2, state="cancelled")
    assert (ledger.num_pending, ledger.num_told, ledger.pending_slots(0)) == (1, 1, [0])
    with pytest.raises(ValueError, match="slot 1 of expansion 0 must be pending, but it was told"):
        ledger.settle(0, index=1, state="cancelled")


def test_the_error_names_the_slots_there_are():
    ledger = Ledger()
    with pytest.raises(ValueError, match="expansion 0 was never asked; this search has asked 0"):
        ledger.expansion(0)
    ledger.open(0, num_slots=2)
    with pytest.raises(ValueError, match="expansion 0 has slots 0 to 1, not slot 2"):
        ledger.require_pending(0, index=2)
