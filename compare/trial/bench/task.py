"""The tasks of a benchmark, which are measured against the number of pending timers."""

from typing import NamedTuple


class Task(NamedTuple):
    """An operation and its driver, which moves the clock: "clock", "event" or "none"."""

    operation: str
    driver: str

    @property
    def name(self) -> str:
        """A short name for file names and anchors."""
        return self.operation if self.driver == "none" else f"{self.operation}-{self.driver}"

    @property
    def title(self) -> str:
        """The heading."""
        title = _TITLES.get(self.operation, self.operation.capitalize())
        return title if self.driver == "none" else f"{title}, {self.driver}-driven"

    @property
    def unit(self) -> str:
        """One operation, in words."""
        return _UNITS.get(self.operation, self.operation)

    @property
    def meaning(self) -> str:
        """A description in a sentence or two."""
        return _MEANINGS.get(self, self.title)


INSERT = Task("insert", "none")
CANCEL_ALL = Task("cancel", "none")
HOLD = Task("hold", "none")
BY_CLOCK = Task("expiry", "clock")
BY_EVENT = Task("expiry", "event")

TASKS = (INSERT, CANCEL_ALL, HOLD, BY_CLOCK, BY_EVENT)
"""All tasks, in the order of tables and charts."""

BY_NAME = {task.name: task for task in TASKS}
"""The tasks by the subject of their rows in the table of results."""

_TITLES = {"hold": "Cancel and insert"}
_UNITS = {"hold": "cancel and insert", "expiry": "timer fired"}
_MEANINGS = {
    INSERT: "Scheduling timers, from none pending up to N.",
    CANCEL_ALL: "Cancelling all N pending timers, in random order.",
    HOLD: "With N timers pending: cancel a random one and schedule a new one, as one operation; the"
    " clock moves one unit for every 100 of them.",
    BY_CLOCK: "The clock moves one unit at a time until all N timers have fired; total time per"
    " timer.",
    BY_EVENT: "The clock moves from one wake-up to the next until all N timers have fired; total"
    " time per timer.",
}
