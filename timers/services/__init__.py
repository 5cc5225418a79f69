"""Timers driven by a real clock: calls from a thread (SystemTimer) and in asyncio (AsyncTimer)."""

from timers.services.async_timer import AsyncTimer, Timeout
from timers.services.calls import ScheduledCall
from timers.services.clock import ManualClock, MonotonicClock
from timers.services.errors import CallbackError, ServiceClosedError, ServiceStateError
from timers.services.moments import Clock
from timers.services.system_timer import SystemTimer

__all__ = [
    "AsyncTimer",
    "CallbackError",
    "Clock",
    "ManualClock",
    "MonotonicClock",
    "ScheduledCall",
    "ServiceClosedError",
    "ServiceStateError",
    "SystemTimer",
    "Timeout",
]
