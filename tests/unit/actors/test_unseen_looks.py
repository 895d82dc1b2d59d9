"""How many looks at unseen inputs there are: as many as tell, where a single one is slow too."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from kopt.actors.supervisor import unseen_timed as module
from kopt.actors.supervisor.trail import Trail
from kopt.actors.supervisor.unseen_probe import Probed
from kopt.timing import Timing
from kopt.unseen_calls import FEWEST, Pair

TIMING = Timing(
    speedup=1.5,
    speedup_ci=(1.45, 1.55),
    time_us=100.0,
    time_ci_us=(99.0, 101.0),
    samples_us=(100.0,),
    baseline="compile",
    baseline_us=150.0,
    eager_us=150.0,
    compile_us=150.0,
    baseline_samples_us=(150.0,),
    num_pairs=10,
    protocol="abba",
)


@pytest.fixture
def looks(monkeypatch):
    """Makes `check_unseen_timed` see pairs of given unseen times, one in each slow probe."""

    def see(unseen_us: list[float], *, probe_s: float) -> tuple[Timing, int]:
        probes, now = [], [0.0]

        def probe(*given, **named) -> Probed:
            now[0] += probe_s
            taken = unseen_us[len(probes) % len(unseen_us)]
            probes.append(taken)
            pair = Pair(seen_us=(1000.0, 100.0), unseen_us=(900.0 + taken, taken))
            calm = Pair(seen_us=(1000.0, 150.0), unseen_us=(1000.0, 150.0))
            return Probed(mine=[pair], theirs=[calm])

        monkeypatch.setattr(module, "probe", probe)
        monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
        eager = SimpleNamespace()
        session = SimpleNamespace(
            baselines=SimpleNamespace(watch=lambda name: eager), sets=[SimpleNamespace(tensors=[])]
        )
        watch = SimpleNamespace(device="cuda")
        timing = module.check_unseen_timed(
            session, watch, auditor=None, timing=TIMING, rng=random.Random(3), trail=Trail()
        )
        return timing, len(probes)

    return see


def test_large_inputs_whose_probes_are_slow_are_looked_at_as_often_as_tells(looks) -> None:
    timing, probes = looks([100.5, 99.8, 100.1], probe_s=5.0)
    assert probes == FEWEST
    assert timing == TIMING


def test_a_probe_that_takes_forever_is_not_made_again(looks) -> None:
    timing, probes = looks([100.0], probe_s=30.0)
    assert probes == 1
    assert timing.speedup_ci[0] == 0.0


def test_a_busy_host_that_cannot_tell_ends_the_look_in_time(looks) -> None:
    timing, probes = looks([70.0, 150.0], probe_s=1.0)
    assert probes == module.PROBES
    assert 0.0 < timing.speedup_ci[0] < TIMING.speedup_ci[0]
    assert looks([70.0, 150.0], probe_s=4.5)[1] == 5
