"""The compiled designs do and count what plain Python does, and expire the share that is known."""

import numpy as np
import pytest

from compare.traffic.tapes.tape import CANCEL, START
from compare.traffic.workloads.catalogue import make
from compare.trial.purgatory import simulation
from compare.trial.purgatory.figures import PURGING, SCANNING
from compare.trial.purgatory.options import INTERVALS
from compare.trial.purgatory.simulation import simulate
from compare.trial.purgatory.traffic import KEYS, WATCHED, Traffic, traffic
from tests.compare.clocks import FakeClock
from tests.compare.trial.purgatory import reference

REFERENCES = {PURGING: reference.purging, SCANNING: reference.scanning}


@pytest.fixture(scope="module")
def few():
    """A second of both loads."""
    return {load: traffic(load, 1000, 1000, seed=5) for load in ("low", "high")}


@pytest.mark.parametrize("interval", [0, 1, 7, 60, 10**6])
@pytest.mark.parametrize("design", [PURGING, SCANNING])
@pytest.mark.parametrize("load", ["low", "high"])
def test_a_design_does_and_counts_what_plain_python_does(few, load, design, interval):
    simulated = simulate(design, few[load], interval)
    expected = REFERENCES[design](few[load], interval)
    assert simulated.counters == expected.counts
    assert simulated.fate.tolist() == expected.fate
    assert simulated.ended_at.tolist() == expected.ended_at


@pytest.mark.parametrize(
    ("limit", "purges", "scanned"), [(6, 0, 0), (5, 1, 0), (2, 1, 0), (1, 1, 2)]
)
def test_the_reaper_scans_what_is_longer_than_the_limit(limit, purges, scanned):
    """Its turn finds six entries in the lists and two requests in the queue, both completed."""
    moments = np.array([0, 0, 1000, 1000, 250_000], np.int64)
    given = Traffic(
        arrivals=moments[[0, 1, 4]],
        services=np.array([1000, 1000, -1], np.int64),
        keys=np.arange(9, dtype=np.int32).reshape(3, WATCHED),
        time=moments,
        request=np.array([0, 1, 0, 1, 2], np.int32),
        timeout=10**6,
    )
    counters = simulate(SCANNING, given, limit).counters
    assert (counters["purges"], counters["queue_scanned"]) == (purges, scanned)


@pytest.mark.parametrize(("load", "share"), [("low", 0.0787), ("high", 0.5)])
def test_the_share_that_expires_is_the_published_one(load, share):
    requests = 100_000
    simulated = simulate(PURGING, traffic(load, 100_000, requests, seed=1), INTERVALS[PURGING])
    spread = 4 * (share * (1 - share) / requests) ** 0.5  # four standard deviations
    assert simulated.share_expired == pytest.approx(share, abs=spread)


def test_what_the_first_call_compiles_is_not_timed(few, monkeypatch):
    clock, costs = FakeClock(), iter([5.0, 0.25])
    monkeypatch.setattr(simulation.time, "process_time", clock)

    def run(*arguments):
        clock.seconds += next(costs)

    # Private: the public way is to compile the designs again.
    monkeypatch.setitem(simulation._RUN, PURGING, run)
    assert simulate(PURGING, few["low"], 7).seconds == 0.25


def test_traffic_has_the_operations_of_the_workload():
    given = traffic("low", 2000, 500, seed=3)
    tape = make("lognormal-low", timers=500, seed=3, parameters={"rate": 2000}).tape
    assert given.timeout == 200_000
    assert (given.arrivals == tape.time[tape.op == START]).all()
    ends = np.sort((given.arrivals + given.services)[given.services >= 0])
    assert (ends == tape.time[tape.op == CANCEL]).all()
    assert given.services.max() < given.timeout
    # Each request first arrives and is then completed, at the times that are its own.
    arrived = set()
    for time, r in zip(given.time.tolist(), given.request.tolist(), strict=True):
        service = given.services[r] if r in arrived else 0
        assert time == given.arrivals[r] + service
        arrived.add(r)
    assert arrived == set(range(500))


def test_a_request_watches_different_keys_and_all_keys_are_watched_alike():
    keys, others = (traffic("low", 1000, 10_000, seed=seed).keys for seed in (3, 4))
    assert keys.shape == (10_000, 3)
    assert (keys.min(), keys.max()) == (0, 99)
    assert (keys != others).any()
    assert all(len(set(row)) == WATCHED for row in keys.tolist())
    watching = np.bincount(keys.ravel(), minlength=KEYS)
    assert len(watching) == KEYS
    mean = 10_000 * WATCHED / KEYS
    assert abs(watching - mean).max() < 5 * mean**0.5
