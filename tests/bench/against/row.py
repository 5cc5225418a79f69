"""What a row of the table is, and how its imports are found in each layout of the project."""

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

Turn = Callable[[int], float]
"""Performs so many operations, and returns the seconds of CPU that they took."""


class AbsentError(Exception):
    """This commit does not have the operation."""


class Row(NamedTuple):
    """An operation that programs call often.

    `case(size, *imported)` prepares the operation beside `size` others, yields a Turn, and cleans
    up afterwards. An import is "module:name"; for an operation that has moved, all its places,
    separated by " | ", newest first. A name may have dots: "timers.services:AsyncTimer.sleep".
    """

    name: str  # "group: operation"; the rows of a group share a process
    sizes: tuple[int, ...]
    imports: tuple[str, ...]
    covers: str  # the public functions and methods that it calls, separated by spaces
    case: Callable[..., Iterator[Turn]]
    unit: str = "pending"  # what the sizes count; empty for an operation that has no size

    @property
    def group(self) -> str:
        """The rows of a group are measured in one process."""
        return self.name.partition(":")[0]


def resolve(places: str) -> Any:
    """Import from the first place that exists in this layout.

    Raises:
        AbsentError: if none does.
    """
    for place in places.split(" | "):
        module_name, _, path = place.partition(":")
        try:
            found: Any = import_module(module_name)
            for name in path.split("."):
                found = getattr(found, name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
                raise  # the module exists and lacks one of its own
            continue
        except AttributeError:
            continue
        if not isinstance(found, ModuleType):  # as `compare.replay` was, a folder
            return found
    raise AbsentError(f"{places.split(' | ')[0]} is absent")


def cpu(work: Callable[..., object], *arguments: object) -> float:
    """Seconds of CPU that a call took, those of other threads of the process included."""
    start = time.process_time()
    work(*arguments)
    return time.process_time() - start
