"""The registry of timers. A new timer takes a kernel file, a class file and one line here."""

from importlib import import_module
from typing import Any

from timers.errors import UnknownTimerError, unknown_name

TIMERS = {
    "unordered-list": "timers.schemes.unordered_list:UnorderedList",
    "heapq-delay-queue": "timers.schemes.heapq_delay_queue:HeapqDelayQueue",
    "delay-queue": "timers.schemes.delay_queue:DelayQueue",
    "simple-wheel": "timers.schemes.simple_wheel:SimpleWheel",
    "hashed-wheel": "timers.schemes.hashed_wheel:HashedWheel",
    "hierarchical-wheel": "timers.schemes.hierarchical_wheel:HierarchicalWheel",
    "cascading-wheel": "timers.schemes.cascading_wheel:CascadingWheel",
    "dense-wheel": "timers.schemes.dense_wheel:DenseWheel",
    "linux-wheel": "timers.schemes.linux_wheel:LinuxWheel",
    "duration-lists": "timers.schemes.duration_lists:DurationLists",
    "ordered-list": "timers.schemes.ordered_list:OrderedList",
    "sorted-hashed-wheel": "timers.schemes.sorted_hashed_wheel:SortedHashedWheel",
}
"""Name in kebab case -> `module:Class`."""


def names() -> list[str]:
    """Return all names, in the order of the tables and charts."""
    return list(TIMERS)


def timer_class(name: str) -> Any:
    """Return the class of a registered name, or of a `module:Class` of your own.

    Raises:
        UnknownTimerError: the name is unknown, or the class cannot be imported.

    >>> timer_class("delay-queue").__name__
    'DelayQueue'
    """
    target = TIMERS.get(name, name)
    module_name, colon, class_name = target.partition(":")
    if not colon or module_name.startswith("."):
        raise UnknownTimerError(unknown_name("timer", name, [*TIMERS, "or module:Class"]))
    try:
        cls = getattr(import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UnknownTimerError(f"cannot import {name!r}: {error}") from None
    except SystemExit as error:
        raise UnknownTimerError(f"cannot import {name!r}: it exits with {error.code!r}") from None
    if not isinstance(cls, type):
        raise UnknownTimerError(f"{name!r} is not a class")
    return cls
