"""The corrected energy of loads and asynchronous copies, each by the bytes that it asked for."""

from __future__ import annotations

from kopt.tools.energy_proxy import energy_terms
from kopt.tools.global_access import bytes_per_sector, sectors


def unused_pj(**counted: float) -> float | None:
    names = {
        "loaded": sectors("ld"),
        "copied": sectors("ldgsts"),
        "ld": bytes_per_sector("ld"),
        "cp": bytes_per_sector("ldgsts"),
    }
    return energy_terms({names[name]: value for name, value in counted.items()}).unused_sectors_pj


def test_copies_are_charged_for_what_they_did_not_ask_for() -> None:
    # 60 of 100 sectors are copies'; they ask for 16 of 32 bytes: 100 pJ * 60 * 0.5.
    assert unused_pj(loaded=100.0, copied=60.0, ld=32.0, cp=16.0) == 3000.0
    # The 40 others ask for 24 bytes: 100 pJ * 40 * 0.25 more.
    assert unused_pj(loaded=100.0, copied=60.0, ld=24.0, cp=16.0) == 4000.0


def test_a_quotient_of_nothing_is_no_waste() -> None:
    assert unused_pj(loaded=100.0, copied=100.0, ld=0.0, cp=32.0) == 0.0
    assert unused_pj(loaded=100.0, ld=0.0) is None
    assert unused_pj(loaded=100.0, copied=100.0, cp=0.0) is None
    assert unused_pj(loaded=0.0, ld=0.0) == 0.0
