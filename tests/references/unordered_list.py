"""Varghese & Lauck's scheme 1: all timers in one list, each of them looked at whenever the clock
moves.

The paper decrements a counter in each timer. Ours: deadlines are compared, and what is due is
sorted.
"""

from collections.abc import Mapping

from tests.references.common import Armed, Reference


class UnorderedList(Reference):
    def __init__(self, parameters: Mapping[str, int], start: int) -> None:
        super().__init__(parameters, start)
        self.waiting: list[Armed] = []

    def arm(self, timer: Armed) -> None:
        timer.within = self.waiting if timer.deadline > self.now else self.due
        timer.within.append(timer)

    def run(self, until: int) -> None:
        self.due += [timer for timer in self.waiting if timer.deadline <= until]
        if until > self.now:
            self.waiting[:] = [timer for timer in self.waiting if timer.deadline > until]
            self.count("timers_touched", len(self.waiting))
        for timer in self.sorted(self.due):
            if timer.deadline > self.now:
                self.now = timer.deadline
                self.count("clock_visits")
            self.deliver([timer])
        self.due.clear()

    def sorted(self, timers: list[Armed]) -> list[Armed]:
        """A merge sort by deadline, from runs of one timer upwards; equal deadlines stay in the
        order of arming.
        """
        runs = [[timer] for timer in timers]
        while len(runs) > 1:
            runs = [self.merged(*runs[k : k + 2]) for k in range(0, len(runs), 2)]
        return runs[0] if runs else []

    def merged(self, left: list[Armed], right: list[Armed] | None = None) -> list[Armed]:
        left, right, merged = left[:], (right or [])[:], []
        while left and right:
            self.count("comparisons")
            merged.append((right if right[0].deadline < left[0].deadline else left).pop(0))
        return merged + left + right

    def filed(self, timer: Armed) -> dict[str, str]:
        return {"bucket": "list"}
