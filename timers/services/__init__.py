"""Timers driven by a real clock: calls in a thread (SystemTimer)."""

from timers.services.calls import ScheduledCall
from timers.services.clock import Clock, ManualClock, MonotonicClock
from timers.services.errors import CallbackError, ServiceClosedError, ServiceStateError
from timers.services.system_timer import SystemTimer

__all__ = [
    "CallbackError",
    "Clock",
    "ManualClock",
    "MonotonicClock",
    "ScheduledCall",
    "ServiceClosedError",
    "ServiceStateError",
    "SystemTimer",
]
