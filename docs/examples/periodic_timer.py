"""Periodic timers: when one fires, schedule its next deadline.

A timer fires once. A periodic timer is scheduled again each time it fires. Its next deadline is the
last deadline plus the period, not the current time plus the period; otherwise small delays would
add up.
"""

import numpy as np

from timers import HierarchicalWheel, place_of

CAPACITY = 1024  # room for pending timers

timer = HierarchicalWheel(tick=1, capacity=CAPACITY)  # one unit is 1 ms, and so is the tick
period = np.zeros(CAPACITY, np.int64)  # by place: the period of each timer, in ms
name = np.empty(CAPACITY, object)


def start(names: list[str], periods: list[int]) -> None:
    """Start one periodic timer for each name."""
    places = place_of(timer.schedule_many(np.add(periods, timer.now)))
    name[places], period[places] = names, periods


start(["flush", "heartbeat", "report"], [100, 250, 1000])

log = []
while timer.now < 1000:
    # A real program would sleep until next_wakeup() and then pass the time of its own clock.
    expired = timer.advance(timer.next_wakeup())
    places = place_of(expired.handles)
    # Copy the names and periods first: new timers may reuse the places of the old ones.
    names, periods = name[places].copy(), period[places].copy()
    again = place_of(timer.schedule_many(expired.deadlines + periods))
    name[again], period[again] = names, periods
    log += zip(expired.fired_at.tolist(), names, strict=True)

for moment, task in log:
    print(f"{moment:5} ms  {task}")

assert [moment for moment, task in log if task == "flush"] == list(range(100, 1001, 100))
assert [moment for moment, task in log if task == "heartbeat"] == [250, 500, 750, 1000]
