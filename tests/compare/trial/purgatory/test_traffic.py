"""Requests have the times of the workload, and expire in the share that is known."""

import numpy as np
import pytest

from compare.traffic.tapes.tape import CANCEL, START
from compare.traffic.workloads.catalogue import make
from compare.trial.purgatory.traffic import KEYS, WATCHED, traffic


@pytest.mark.parametrize(("load", "share"), [("low", 0.0787), ("high", 0.5)])
def test_the_share_that_expires_is_the_published_one(load, share):
    requests = 100_000
    expire = traffic(load, 100_000, requests, seed=1).services < 0
    spread = 4 * (share * (1 - share) / requests) ** 0.5  # four standard deviations
    assert expire.mean() == pytest.approx(share, abs=spread)


def test_traffic_has_the_operations_of_the_workload():
    given = traffic("low", 2000, 500, seed=3)
    tape = make("lognormal-low", timers=500, seed=3, parameters={"rate": 2000}).tape
    assert given.timeout == 200_000
    assert (given.arrivals == tape.time[tape.op == START]).all()
    # Each request is completed at the next operation on its id, if that is a cancel.
    operations = list(zip(tape.time.tolist(), tape.op.tolist(), tape.id.tolist(), strict=True))
    expected = []
    for place, (arrival, op, id_) in enumerate(operations):
        if op == START:
            later = ((time, op) for time, op, other in operations[place + 1 :] if other == id_)
            end, op = next(later, (0, START))
            expected.append(end - arrival if op == CANCEL else -1)
    assert given.services.tolist() == expected
    assert given.services.max() < given.timeout


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
