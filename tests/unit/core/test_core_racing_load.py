"""Races on a busy host, simulated: equal kernels win none of them, true gains still do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kopt.racing import Race, pair_ratios, speedup_interval

RACES = 2_000
PAIRS = 40
ALLOWED = RACES / 300


def white(rng, slots, *, sigma):
    """Heavy tails, no memory: Student's t with four degrees of freedom."""
    return sigma * rng.standard_t(4, (RACES, slots)) / math.sqrt(2.0)


def lasting(rng, slots, *, sigma, rho):
    """AR(1): each slot's noise is mostly that of the slot before."""
    noise = rng.normal(0.0, sigma, (RACES, slots))
    for slot in range(1, slots):
        noise[:, slot] = rho * noise[:, slot - 1] + math.sqrt(1.0 - rho**2) * noise[:, slot]
    return noise


def bursts(rng, slots, *, dwell, factor):
    """A load that comes and goes; it lasts so many slots in the mean, and so does the calm."""
    switches = rng.random((RACES, slots)) < 1.0 / dwell
    busy = (np.cumsum(switches, axis=1) + rng.integers(0, 2, (RACES, 1))) % 2
    return math.log(factor) * busy + white(rng, slots, sigma=0.01)


def drift(rng, slots):
    """A host that gets slower all along: by a half over the longest race."""
    return np.linspace(0.0, math.log(1.5), slots) + white(rng, slots, sigma=0.003)


def beats(rng, slots):
    """A load with the period of a pair, of which it always meets the same slot."""
    phase = rng.integers(0, 2, (RACES, 1))
    return math.log(1.3) * ((np.arange(slots) + phase) % 2) + white(rng, slots, sigma=0.01)


def second_is_slower(rng, slots):
    """Whoever runs second finds the caches as the first has left them: 3 % dearer."""
    return 0.03 * (np.arange(slots) % 2) + white(rng, slots, sigma=0.001)


LOADS = {
    "white 0.3 %": lambda rng, slots: white(rng, slots, sigma=0.003),
    "white 3 %": lambda rng, slots: white(rng, slots, sigma=0.03),
    "white 30 %": lambda rng, slots: white(rng, slots, sigma=0.3),
    "AR(1) 0.9": lambda rng, slots: lasting(rng, slots, sigma=0.2, rho=0.9),
    "AR(1) 0.99": lambda rng, slots: lasting(rng, slots, sigma=0.5, rho=0.99),
    "bursts of 3 slots": lambda rng, slots: bursts(rng, slots, dwell=3, factor=2.0),
    "bursts of 10 slots": lambda rng, slots: bursts(rng, slots, dwell=10, factor=4.0),
    "bursts of 100 slots": lambda rng, slots: bursts(rng, slots, dwell=100, factor=3.0),
    "drift": drift,
    "beats": beats,
    "second is slower": second_is_slower,
}


def found(noise, *, rng, gain=0.0):
    """Race on noise of consecutive slots; return (above 1, below 1, pairs in the mean)."""
    above = below = pairs = 0
    for slots in np.exp(noise):
        race = Race(min_pairs=10, max_pairs=PAIRS)
        for first, second in slots.reshape(-1, 2):
            mine, theirs = (first, second) if rng.random() < 0.5 else (second, first)
            if race.observe(pair_ratios([theirs * math.exp(gain)], candidate_us=[mine])) != (
                "continue"
            ):
                break
        _, (low, high) = speedup_interval(race.ratios)
        above += low > 1.0
        below += high < 1.0
        pairs += len(race.ratios)
    return above, below, pairs / len(noise)


ALWAYS = ("white 3 %", "AR(1) 0.99", "bursts of 10 slots", "second is slower")


@pytest.mark.parametrize(
    "load",
    [each if each in ALWAYS else pytest.param(each, marks=pytest.mark.soak) for each in LOADS],
)
def test_an_equal_kernel_is_neither_faster_nor_slower_whatever_the_load(load) -> None:
    # The chance of either is 1 in 600 at most, so that 3.3 are expected of each.
    rng = np.random.default_rng(7)
    above, below, _ = found(LOADS[load](rng, 2 * PAIRS), rng=rng)
    assert above <= ALLOWED
    assert below <= ALLOWED


@pytest.mark.parametrize(("gain", "sigma", "most_pairs"), [(0.03, 0.01, 20), (0.2, 0.02, 10.5)])
def test_a_true_gain_is_found_on_a_calm_host_in_few_pairs(gain, sigma, most_pairs) -> None:
    rng = np.random.default_rng(8)
    noise = white(rng, 2 * PAIRS, sigma=sigma / math.sqrt(2.0))[:600]
    above, _, pairs = found(noise, rng=rng, gain=math.log1p(gain))
    assert above > 0.98 * len(noise)
    assert pairs < most_pairs


def test_a_gain_beyond_the_load_is_found_in_bursts_too() -> None:
    rng = np.random.default_rng(9)
    noise = bursts(rng, 2 * PAIRS, dwell=10, factor=2.0)[:600]
    above, _, _ = found(noise, rng=rng, gain=math.log(3.0))
    assert above == len(noise)


@pytest.mark.parametrize("crowded", ["mine", "theirs"])
def test_a_process_left_on_a_crowded_processor_is_neither_faster_nor_slower(crowded) -> None:
    # A coin does not undo it: all 40 pairs are alike. The kernel has counted the waiting.
    rng = np.random.default_rng(10)
    waited = 0.36 if crowded == "theirs" else -0.36
    net = rng.normal(0.0, 0.01, PAIRS)
    gross = (net + waited).tolist()
    _, (low, high) = speedup_interval(gross, net_ratios=net.tolist())
    assert low < 1.0 < high
    _, (low, high) = speedup_interval(gross)
    assert not low < 1.0 < high
