"""Varghese & Lauck's scheme 2: a list sorted by deadline, searched from the rear."""

from collections.abc import Mapping

from tests.references.common import Armed, Reference


class OrderedList(Reference):
    def __init__(self, parameters: Mapping[str, int], start: int) -> None:
        super().__init__(parameters, start)
        self.timers: list[Armed] = []

    def arm(self, timer: Armed) -> None:
        timer.within = self.timers
        self.insert_from_the_rear(timer)

    def run(self, until: int) -> None:
        while self.timers and self.timers[0].deadline <= until:
            if self.timers[0].deadline > self.now:
                self.now = self.timers[0].deadline
                self.count("clock_visits")
            self.deliver([self.timers.pop(0)])

    def has_due(self) -> bool:
        return bool(self.timers) and self.timers[0].deadline <= self.now

    def filed(self, timer: Armed) -> dict[str, str]:
        return {"bucket": "list"}
