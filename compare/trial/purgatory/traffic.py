"""The requests of the experiment: when they arrive, when they are answered, which keys they watch.

The arrivals and service times are those of the workloads `lognormal-low` and `lognormal-high`.
Each request waits for its timeout and watches several keys. A request is completed at the end of
its service time if that is below the timeout; otherwise it expires.
"""

from typing import NamedTuple

import numpy as np

from compare.traffic.tapes.tape import START
from compare.traffic.workloads.catalogue import make, workload_named
from compare.traffic.workloads.stream import CHOICE, Stream
from timers.arrays import Int32s, Int64s

LOADS = {"low": "lognormal-low", "high": "lognormal-high"}
"""Rate of timeouts -> the workload of the requests, in microseconds."""

MICROSECONDS = 10**6
"""Microseconds per second."""

KEYS = 100
"""Number of keys, as in the published experiment."""

WATCHED = 3
"""Number of different keys that a request watches."""


class Traffic(NamedTuple):
    """Requests in the order of arrival; times are in microseconds from the start."""

    arrivals: Int64s  # (requests,); never decreases
    services: Int64s  # (requests,), from the arrival to the completion; -1 if it expires
    keys: Int32s  # (requests, WATCHED), different within a row
    timeout: int


def traffic(load: str, rate: int, requests: int, seed: int = 0) -> Traffic:
    """Requests of a load, `rate` per second on average; the same on every machine.

    O(n log n); about 0.5 s for 1e6.
    """
    name = LOADS[load]
    tape = make(name, timers=requests, seed=seed, parameters={"rate": rate}).tape
    is_arrival = tape.op == START
    number = np.cumsum(is_arrival) - 1
    # Among the rows of one id, in order of time, a completion follows its own arrival.
    order = np.argsort(tape.id, kind="stable")
    places = np.flatnonzero(~is_arrival[order])
    completed = number[order[places - 1]]
    arrivals, services = tape.time[is_arrival], np.full(requests, -1, np.int64)
    services[completed] = tape.time[order[places]] - arrivals[completed]
    timeout = workload_named(name).defaults["timeout"]
    return Traffic(arrivals, services, _watched_keys(requests, seed), timeout)


def _watched_keys(requests: int, seed: int) -> Int32s:
    """Choose different keys at random for each request."""
    raw = Stream(seed, 1, 0).raw(CHOICE, requests * WATCHED).reshape(requests, WATCHED)
    keys = np.empty((requests, WATCHED), np.int64)
    for column in range(WATCHED):
        # The index of a key among those not yet taken; each taken key below it shifts it up.
        keys[:, column] = raw[:, column] % np.uint64(KEYS - column)
        for taken in np.sort(keys[:, :column], axis=1).T:
            keys[:, column] += keys[:, column] >= taken
    return keys.astype(np.int32)
