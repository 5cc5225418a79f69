"""Your own timer behind the protocol, compared with a registered one.

`CoarseBuckets` keeps the handles of a bucket in a dict, and rounds each deadline up to the end of
its bucket. Neither Kafka nor Netty rounds like this, so the traits declare an `OwnRounding`: a
closed form with bounds. A comparison checks every expiry against it before measuring anything.
"""

import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from timers import LIMIT, Expired
from timers.protocol import Timer
from timers.rounding import OwnRounding
from timers.traits import Parameter, Traits


def rounding(parameters):
    """Up to the next multiple of the tick: from 0 to tick - 1 units late."""
    tick = parameters["tick"]

    def due_at(deadline, armed_at):
        if deadline <= armed_at:
            return armed_at
        return min(-(-deadline // tick) * tick, LIMIT)

    return OwnRounding(due_at, least=0, greatest=tick - 1)


class CoarseBuckets(Timer):
    """Buckets of `tick` units in a dict, by the time at which they fire."""

    traits = Traits(
        name="coarse-buckets",
        scheme="one dict of handles per expiry time",
        summary="buckets in a dict",
        rounding=rounding,
        order="unspecified",
        parameters={"tick": Parameter(10)},
        exact_next_expiry=True,
        costs=(),
        jumps="searches for the first bucket",
        suits="few distinct expiry times",
        drawback="scans all buckets to find the first",
        source="docs/examples/own_timer.py",
    )
    now = 0  # each instance sets its own, and its own parameters
    parameters = traits.defaults

    def __init__(self, tick=10, *, start=0):
        self.now = start
        self.parameters = {"tick": tick}
        self._due_at = rounding(self.parameters).due_at
        self._buckets = {}  # moment -> {handle: deadline}
        self._bucket_of = {}  # handle -> moment
        self._last_handle = 0

    def __len__(self):
        return len(self._bucket_of)

    @property
    def nbytes(self):
        return sys.getsizeof(self._bucket_of) + sum(map(sys.getsizeof, self._buckets.values()))

    def schedule(self, deadline):
        self._last_handle += 1
        self._file(self._last_handle, deadline)
        return self._last_handle

    def cancel(self, handle):
        moment = self._bucket_of.pop(handle, None)
        if moment is None:
            return False
        bucket = self._buckets[moment]
        del bucket[handle]
        if not bucket:
            del self._buckets[moment]
        return True

    def reschedule(self, handle, deadline):
        if not self.cancel(handle):
            return False
        self._file(handle, deadline)
        return True

    def advance(self, now, limit=None):
        moments = sorted(moment for moment in self._buckets if moment <= now)
        due = [
            (handle, deadline, moment)
            for moment in moments
            for handle, deadline in self._buckets[moment].items()
        ]
        rows = due[:limit]
        for handle, _, _ in rows:
            self.cancel(handle)
        self.now = rows[-1][2] if len(rows) == limit else now
        return Expired(*np.array(rows, np.int64).reshape(-1, 3).T)

    def next_expiry(self):
        return min(self._buckets, default=None)

    def _file(self, handle, deadline):
        moment = self._due_at(deadline, self.now)
        self._bucket_of[handle] = moment
        self._buckets.setdefault(moment, {})[handle] = deadline


if __name__ == "__main__":
    from compare import Comparison, read_run, run_comparison

    with tempfile.TemporaryDirectory() as directory:
        # `module:Class` names any class that can be imported. A command also looks in the current
        # directory: wheelwork compare --timers own_timer:CoarseBuckets/tick=10,...
        path = run_comparison(
            Comparison(
                timers=("own_timer:CoarseBuckets/tick=10", "heapq-delay-queue"),
                workloads=("keepalive",),
                operations=1_000,
                sizes=(),  # only replay; with sizes, single operations are measured too
                repeats=3,
                runs=directory,
            )
        )
        run = read_run(path)
        print("Every expiry was as declared. Median ns per operation, and lateness in ms:")
        samples = {}
        for row in run.rows:
            samples.setdefault(row.contestant, {}).setdefault(row.metric, []).append(row.value)
        for timer, values in samples.items():
            ns, [low], [high] = (
                values[name] for name in ("replay_time", "lateness_min", "lateness_max")
            )
            print(f"{timer:32}{median(ns):7.0f} {low:4.0f} to {high:.0f}")
        if "--page" in sys.argv:
            from reports.page import write_report

            print(write_report(run, Path("own-timer-report")))
