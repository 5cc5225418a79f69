"""Run a compiled design over requests, and count its work."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from compare.trial.purgatory.figures import PURGING, SCANNING
from compare.trial.purgatory.kernels import (
    CELLS,
    COUNTERS,
    EXPIRED,
    Work,
    run_purging,
    run_scanning,
)
from compare.trial.purgatory.traffic import KEYS, Traffic
from timers.kernels.bitmap import words_for
from timers.kernels.pool import EXPIRY
from timers.registry import timer_class

_RUN = {PURGING: run_purging, SCANNING: run_scanning}

_ROOM = {PURGING: 1 << 12, SCANNING: 1}
"""Rows in the buffer of expiries; the old design takes them from its queue one by one."""


@dataclass(frozen=True)
class Simulated:
    """The result of a simulation."""

    seconds: float  # processor time of the compiled code
    counters: dict[str, int]
    fate: npt.NDArray[np.int8]  # (requests,): COMPLETED or EXPIRED
    ended_at: npt.NDArray[np.int64]  # (requests,), microseconds

    @property
    def share_expired(self) -> float:
        """The share of the requests that timed out."""
        return float((self.fate == EXPIRED).mean()) if self.fate.size else 0.0


def simulate(
    design: str, traffic: Traffic, interval: int, *, timer: str = "hierarchical-wheel"
) -> Simulated:
    """Run a design over the requests, in simulated time.

    `interval` is the purge interval of the new design, or the limit of the old one. The new design
    may use any `timer` with a kernel; the old one has a delay queue. 60 bytes per request.
    """
    requests = len(traffic.keys)
    queue = timer_class(timer if design == PURGING else "delay-queue")(capacity=max(requests, 1))
    places = queue.state.nodes.size  # including sentinels: at least one per place
    watching = np.bincount(traffic.keys.ravel(), minlength=KEYS)
    work = Work(
        traffic.time,
        traffic.request,
        traffic.keys,
        np.cumsum(watching) - watching,
        np.zeros(KEYS, np.int64),
        np.zeros(traffic.keys.size, np.int32),
        np.zeros(requests, np.int64),
        np.zeros(places, np.int32),
        np.zeros(requests, np.int8),
        np.zeros(words_for(requests), np.int64),
        np.zeros(requests, np.int64),
        np.zeros(_ROOM[design], EXPIRY),
        np.zeros(places, np.int64),
        np.zeros(CELLS, np.int64),
        np.zeros(len(COUNTERS), np.int64),
    )
    run: Any = _RUN[design]
    # Compile, or load from the disk cache, before the clock starts.
    run(queue.state, work._replace(time=traffic.time[:0]), traffic.timeout, interval)
    started = time.process_time()
    run(queue.state, work, traffic.timeout, interval)
    seconds = time.process_time() - started
    counters = dict(zip(COUNTERS, work.counters.tolist(), strict=True))
    return Simulated(seconds, counters, work.fate, work.ended_at)
