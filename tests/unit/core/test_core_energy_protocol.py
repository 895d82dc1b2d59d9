"""Energy of a call from windows: idle subtracted, arms paired, drifting clocks thrown out."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from kopt.energy_protocol import EnergyFigures, Window, energy_figures, figures_from_report
from kopt.errors import ProfileFailed


def window(arm, energy_j, *, calls=100, seconds=2.0, clock=1980.0) -> Window:
    return Window(arm=arm, calls=calls, seconds=seconds, energy_mj=1e3 * energy_j, clock_mhz=clock)


ABBA = ("candidate", "baseline", "baseline", "candidate", "candidate", "baseline")


def test_the_idle_draw_is_not_the_call_s() -> None:
    windows = [window(arm, 1200.0 if arm == "candidate" else 2200.0) for arm in ABBA]
    found = energy_figures(windows, idle_w=100.0)
    assert found.candidate_mj == 10_000.0  # (1200 J - 2 s x 100 W) / 100 calls
    assert found.baseline_mj == 20_000.0
    assert found.reduction == 2.0
    assert (found.num_pairs, found.rejected) == (3, 0)


def test_a_pair_whose_clocks_drifted_is_no_pair() -> None:
    energies = {"candidate": 1000.0, "baseline": 2000.0}
    windows = [window(arm, energies[arm]) for arm in (*ABBA, "baseline", "candidate")]
    windows[0] = window("candidate", 1.0, clock=1900.0)
    found = energy_figures(windows, idle_w=0.0)
    assert (found.num_pairs, found.rejected, found.reduction) == (3, 1, 2.0)


def test_too_few_pairs_are_no_measurement() -> None:
    with pytest.raises(ProfileFailed, match="2 pairs"):
        energy_figures([window(arm, 1000.0) for arm in ABBA[:4]], idle_w=0.0)


@pytest.mark.parametrize("change", [{"seconds": 0.5}, {"calls": 0}])
def test_a_window_shorter_than_the_counter_s_refresh_is_refused(change) -> None:
    with pytest.raises(ProfileFailed, match="window"):
        energy_figures([window(arm, 1000.0, **change) for arm in ABBA], idle_w=0.0)


def test_less_than_the_idle_draw_is_no_measurement() -> None:
    with pytest.raises(ProfileFailed, match="0 pairs"):
        energy_figures([window(arm, 100.0) for arm in ABBA], idle_w=100.0)


FIGURES = EnergyFigures(
    candidate_mj=10.0, baseline_mj=15.0, reduction=1.5, num_pairs=6, rejected=0, idle_w=76.7
)


def test_figures_cross_a_process_as_they_are() -> None:
    assert figures_from_report(asdict(FIGURES)) == FIGURES
    assert "10 mJ" in FIGURES.words()
    assert "1.5x less" in FIGURES.words()


@pytest.mark.parametrize(
    "lie",
    [
        {"candidate_mj": float("nan")},
        {"candidate_mj": -1.0},
        {"baseline_mj": "little"},
        {"reduction": 0.0},
        {"idle_w": None},
    ],
)
def test_a_report_that_cannot_be_is_refused(lie) -> None:
    with pytest.raises(ProfileFailed, match="no figures"):
        figures_from_report({**asdict(FIGURES), **lie})
