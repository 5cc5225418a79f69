"""What tables and charts call the tasks."""

from compare.trial.bench.task import TASKS

TEXTS = (
    ("insert", "Insert", "insert", "Scheduling timers"),
    ("cancel", "Cancel", "cancel", "Cancelling all N"),
    ("hold", "Cancel and insert", "cancel and insert", "With N timers pending"),
    ("expiry-clock", "Expiry, clock-driven", "timer fired", "The clock moves one unit at a time"),
    ("expiry-event", "Expiry, event-driven", "timer fired", "The clock moves from one wake-up"),
)
"""The name, title, unit and first words of the meaning of each."""


def test_each_task_has_its_texts():
    assert [
        (task.name, task.title, task.unit, task.meaning[: len(meaning)])
        for task, (*_, meaning) in zip(TASKS, TEXTS, strict=True)
    ] == [*TEXTS]
