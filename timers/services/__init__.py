"""Services in real time: SystemTimer, AsyncTimer, purgatories and idle detectors."""

from timers.services.async_timer import AsyncTimer, Timeout
from timers.services.calls import ScheduledCall
from timers.services.clock import ManualClock, MonotonicClock
from timers.services.delayed_operation import DelayedOperation
from timers.services.errors import (
    CallbackError,
    KeyTypeError,
    ServiceClosedError,
    ServiceStateError,
)
from timers.services.idle_detector import IdleDetector, ScanningIdleDetector
from timers.services.idle_ring import IdleRing
from timers.services.moments import Clock
from timers.services.purgatory import Purgatory
from timers.services.scanning_purgatory import ScanningPurgatory
from timers.services.system_timer import SystemTimer

__all__ = [
    "AsyncTimer",
    "CallbackError",
    "Clock",
    "DelayedOperation",
    "IdleDetector",
    "IdleRing",
    "KeyTypeError",
    "ManualClock",
    "MonotonicClock",
    "Purgatory",
    "ScanningIdleDetector",
    "ScanningPurgatory",
    "ScheduledCall",
    "ServiceClosedError",
    "ServiceStateError",
    "SystemTimer",
    "Timeout",
]
