"""Services in real time: SystemTimer, AsyncTimer, a purgatory and an idle detector."""

from timers.services.async_timer import AsyncTimer
from timers.services.calls import ScheduledCall
from timers.services.clock import Clock, ManualClock, MonotonicClock
from timers.services.delayed_operation import DelayedOperation
from timers.services.errors import (
    CallbackError,
    KeyTypeError,
    OverloadError,
    ServiceClosedError,
    ServiceStateError,
)
from timers.services.event_loop import wheel_event_loop
from timers.services.idle_detector import IdleDetector
from timers.services.purgatory import Purgatory
from timers.services.system_timer import SystemTimer

__all__ = [
    "AsyncTimer",
    "CallbackError",
    "Clock",
    "DelayedOperation",
    "IdleDetector",
    "KeyTypeError",
    "ManualClock",
    "MonotonicClock",
    "OverloadError",
    "Purgatory",
    "ScheduledCall",
    "ServiceClosedError",
    "ServiceStateError",
    "SystemTimer",
    "wheel_event_loop",
]
