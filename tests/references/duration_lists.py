"""Node.js's timers (lib/internal/timers.js): a map from each duration to a list, and a priority
queue of the lists.

The functions are insert, listOnTimeout and processTimers. Ours: an empty list goes at once, and a
list moves in the queue as soon as its first timer goes; Node.js does both when the list's turn
comes. The queue is that of the delay queue's reference: an entry is removed as in Wegener's
bottom-up heapsort.
"""

from collections.abc import Mapping

from tests.references.common import Armed, Reference


class TimersList:
    """The timers of one duration, in the order of arming."""

    def __init__(self, duration: int) -> None:
        self.duration = duration
        self.timers: list[Armed] = []


class DurationLists(Reference):
    def __init__(self, parameters: Mapping[str, int], start: int) -> None:
        super().__init__(parameters, start)
        self.timer_list_map: dict[int, TimersList] = {}
        self.timer_list_queue: list[TimersList] = []

    def arm(self, timer: Armed) -> None:
        duration = timer.deadline - self.now
        if duration not in self.timer_list_map:
            timer.within = self.timer_list_map[duration] = TimersList(duration)
            timer.within.timers.append(timer)
            self.timer_list_queue.append(timer.within)
            self.rise(len(self.timer_list_queue) - 1, timer.within)
        else:
            timer.within = self.timer_list_map[duration]
            timer.within.timers.append(timer)

    def cancel(self, timer: Armed) -> None:
        of_duration, queue = timer.within, self.timer_list_queue
        was_first = of_duration.timers[0] is timer
        hole = next(k for k, other in enumerate(queue) if other is of_duration)
        of_duration.timers = [other for other in of_duration.timers if other is not timer]
        if of_duration.timers and was_first:
            self.rise(self.sink(hole), of_duration)
        elif not of_duration.timers:
            del self.timer_list_map[of_duration.duration]
            last = queue.pop()
            if last is not of_duration:
                self.rise(self.sink(hole), last)

    def run(self, until: int) -> None:
        while self.timer_list_queue and self.first.deadline <= until:
            first = self.first
            if first.deadline > self.now:
                self.now = first.deadline
                self.count("clock_visits")
            self.cancel(first)
            self.deliver([first])

    @property
    def first(self) -> Armed:
        return self.timer_list_queue[0].timers[0]

    def has_due(self) -> bool:
        return bool(self.timer_list_queue) and self.first.deadline <= self.now

    def rise(self, k: int, moved: TimersList) -> None:
        queue = self.timer_list_queue
        while k > 0 and not self.precedes(queue[(k - 1) // 2], moved):
            queue[k] = queue[(k - 1) // 2]
            k = (k - 1) // 2
        queue[k] = moved

    def sink(self, k: int) -> int:
        """Move the hole at index k down to a leaf; the leaf's index."""
        queue = self.timer_list_queue
        while 2 * k + 1 < len(queue):
            child = 2 * k + 1
            if child + 1 < len(queue) and self.precedes(queue[child + 1], queue[child]):
                child += 1
            queue[k] = queue[child]
            k = child
        return k

    def precedes(self, a: TimersList, b: TimersList) -> bool:
        """Of equal deadlines, the longer duration was armed first."""
        self.count("comparisons")
        first, other = a.timers[0].deadline, b.timers[0].deadline
        return (first, -a.duration) < (other, -b.duration)

    def place(self, timer: Armed) -> dict[str, str]:
        return {"bucket": f"delay {timer.within.duration}"}
