"""The names of callers."""

from collections.abc import Mapping

from compare.trial.bench.callers import BATCHES, COMPILED_CODE, LOOP, PYTHON, SERVICE, UVLOOP

TITLES: Mapping[str, tuple[str, str]] = {
    PYTHON: ("a Python program", "It calls schedule, cancel and advance, one timer at a time."),
    BATCHES: (
        "Python, in batches",
        "It passes all that happens in a step of the clock to schedule_many and cancel_many.",
    ),
    SERVICE: ("Python, through a SystemTimer", "A thread of the service runs callbacks."),
    LOOP: (
        "an asyncio program",
        "It uses asyncio's own loop, or wheel_event_loop, which keeps calls in a timer.",
    ),
    UVLOOP: (
        "a program on uvloop",
        "It uses uvloop, or wheel_event_loop(base=uvloop.Loop), which keeps calls in a timer.",
    ),
    COMPILED_CODE: ("compiled code", "A compiled loop calls the kernel, as in a simulation."),
}
"""Caller -> its name on the page, and what it means; in order."""
