"""Interchangeable timers: the classic schemes for pending timeouts behind one interface.

>>> from timers import HierarchicalWheel
>>> timer = HierarchicalWheel(tick=1, wheel_size=20)
>>> connection, request = timer.schedule(30_000), timer.schedule_after(200)
>>> timer.cancel(request)
True
>>> timer.advance(30_000).handles.tolist() == [connection]
True

`timers.protocol` states the contract that they all keep.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from timers.errors import TimerError
from timers.limits import LIMIT
from timers.protocol import Expired, Timer
from timers.registry import TIMERS, names, timer_class

if TYPE_CHECKING:  # a timer not listed here has the static type of `__getattr__`
    from timers.schemes.base import place_of as place_of
    from timers.schemes.cascading_wheel import CascadingWheel as CascadingWheel
    from timers.schemes.delay_queue import DelayQueue as DelayQueue
    from timers.schemes.dense_wheel import DenseWheel as DenseWheel
    from timers.schemes.duration_lists import DurationLists as DurationLists
    from timers.schemes.hashed_wheel import HashedWheel as HashedWheel
    from timers.schemes.heapq_delay_queue import HeapqDelayQueue as HeapqDelayQueue
    from timers.schemes.hierarchical_wheel import HierarchicalWheel as HierarchicalWheel
    from timers.schemes.linux_wheel import LinuxWheel as LinuxWheel
    from timers.schemes.ordered_list import OrderedList as OrderedList
    from timers.schemes.simple_wheel import SimpleWheel as SimpleWheel
    from timers.schemes.sorted_hashed_wheel import SortedHashedWheel as SortedHashedWheel
    from timers.schemes.unordered_list import UnorderedList as UnorderedList

__version__ = "0.3.0"

# Imported on first use: the classes import Numba, which takes half a second.
_LAZY = {target.partition(":")[2]: target.partition(":")[0] for target in TIMERS.values()}
_LAZY["place_of"] = "timers.schemes.base"

__all__ = ["LIMIT", "Expired", "Timer", "TimerError", "names", "timer_class"]
__all__ += _LAZY


def __getattr__(name: str) -> Callable[..., Timer]:
    if name in _LAZY:
        value: Callable[..., Timer] = getattr(import_module(_LAZY[name]), name)
        return value
    raise AttributeError(f"module 'timers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
