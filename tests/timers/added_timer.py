"""A pytest plugin that adds a small timer to the registry: `pytest -p tests.timers.added_timer`."""

import dataclasses
import importlib
from typing import Any

import timers
from timers.registry import TIMERS
from timers.schemes.unordered_list import UnorderedList


class AddedTimer(UnorderedList):
    """A scheme by another name, with a kernel like all others."""

    traits = dataclasses.replace(UnorderedList.traits, name="added-timer")


def pytest_configure(config: Any) -> None:
    """List it second, so that nothing can rely on the order or the number of timers."""
    first, *others = TIMERS.items()
    TIMERS.clear()
    TIMERS.update([first, ("added-timer", f"{__name__}:AddedTimer"), *others])
    importlib.reload(timers)  # its names follow from the registry
