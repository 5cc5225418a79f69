"""Kafka's timer: wheels of growing ticks that share one DelayQueue of buckets.

Its parts bear the names of the original: TimingWheel, TimerTaskList (a bucket), SystemTimer's
advanceClock, and java.util.PriorityQueue inside the DelayQueue.

Kafka's wheels learn the time from expiring buckets alone. Ours: as in the kernel, advance ends with
every wheel's clock aligned to the time.
"""

from collections.abc import Mapping

from tests.references.common import Armed, Reference


class TimerTaskList:
    """A bucket: its timers in the order of adding, and when it expires, -1 while it is not
    queued.
    """

    def __init__(self, level: int, slot: int) -> None:
        self.level, self.slot = level, slot
        self.timers: list[Armed] = []
        self.expiration = -1

    def set_expiration(self, expiration: int) -> bool:
        """Whether that changed it."""
        changed = expiration != self.expiration
        self.expiration = expiration
        return changed


class PriorityQueue:
    """java.util.PriorityQueue of buckets, with its siftUp and siftDown."""

    def __init__(self, timer: "HierarchicalWheel") -> None:
        self.queue: list[TimerTaskList] = []
        self.timer = timer

    def compare(self, a: TimerTaskList, b: TimerTaskList) -> int:
        self.timer.count("comparisons")
        return a.expiration - b.expiration

    def offer(self, bucket: TimerTaskList) -> None:
        self.timer.count("queue_offers")
        self.queue.append(bucket)
        k = len(self.queue) - 1
        while k > 0:
            parent = (k - 1) // 2
            if self.compare(bucket, self.queue[parent]) >= 0:
                break
            self.queue[k] = self.queue[parent]
            k = parent
        self.queue[k] = bucket

    def poll(self) -> TimerTaskList:
        self.timer.count("queue_polls")
        first, last = self.queue[0], self.queue.pop()
        size = len(self.queue)
        if size == 0:
            return first
        k = 0
        while k < size // 2:
            child = 2 * k + 1
            right = child + 1
            if right < size and self.compare(self.queue[child], self.queue[right]) > 0:
                child = right
            if self.compare(last, self.queue[child]) <= 0:
                break
            self.queue[k] = self.queue[child]
            k = child
        self.queue[k] = last
        return first


class TimingWheel:
    """One level, and above it, as soon as a deadline needs it, its overflow wheel."""

    def __init__(
        self, timer: "HierarchicalWheel", level: int, tick: int, wheel_size: int, start: int
    ) -> None:
        self.timer, self.level, self.tick, self.wheel_size = timer, level, tick, wheel_size
        self.interval = tick * wheel_size
        self.current_time = start - start % tick
        self.buckets = [TimerTaskList(level, slot) for slot in range(wheel_size)]
        self.overflow_wheel: TimingWheel | None = None

    def add(self, timer: Armed) -> bool:
        """Put a timer into the wheel that covers its deadline; False if it is due."""
        if timer.deadline < self.current_time + self.tick:
            return False
        if timer.deadline < self.current_time + self.interval:
            virtual_id = timer.deadline // self.tick
            bucket = self.buckets[virtual_id % self.wheel_size]
            bucket.timers.append(timer)
            timer.bucket, timer.within = bucket, bucket.timers
            if bucket.set_expiration(virtual_id * self.tick):
                self.timer.queue.offer(bucket)
            return True
        if self.overflow_wheel is None:
            above = (self.level + 1, self.interval, self.wheel_size, self.current_time)
            self.overflow_wheel = TimingWheel(self.timer, *above)
        return self.overflow_wheel.add(timer)

    def advance_clock(self, time: int) -> None:
        if time >= self.current_time + self.tick:
            self.current_time = time - time % self.tick
            if self.overflow_wheel is not None:
                self.overflow_wheel.advance_clock(self.current_time)


class HierarchicalWheel(Reference):
    def __init__(self, parameters: Mapping[str, int], start: int) -> None:
        super().__init__(parameters, start)
        self.queue = PriorityQueue(self)
        self.wheel = TimingWheel(self, 1, parameters["tick"], parameters["wheel_size"], start)

    def arm(self, timer: Armed) -> None:
        if not self.wheel.add(timer):
            timer.within = self.due  # ours: the next advance delivers it; Kafka runs it at once
            self.due.append(timer)

    def run(self, until: int) -> None:
        self.deliver(self.due)
        while self.queue.queue and self.queue.queue[0].expiration <= until:
            bucket = self.queue.poll()
            if bucket.expiration > self.now:
                self.now = bucket.expiration
                self.count("clock_visits")
            self.wheel.advance_clock(bucket.expiration)
            self.flush(bucket)
            self.deliver(self.due)
        self.wheel.advance_clock(until)  # ours

    def flush(self, bucket: TimerTaskList) -> None:
        """Add the timers of an expired bucket again: they go into finer wheels, or are due."""
        self.count("slots_visited")
        self.count("empty_polls", 0 if bucket.timers else 1)
        if bucket.level > 1:
            self.count("refiled", len(bucket.timers))
            self.count("timers_touched", len(bucket.timers))
        timers, bucket.timers = bucket.timers, []
        bucket.expiration = -1
        for timer in timers:
            self.arm(timer)

    def filed(self, timer: Armed) -> dict[str, int]:
        return {"level": timer.bucket.level, "slot": timer.bucket.slot}
