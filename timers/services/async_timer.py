"""`AsyncTimer`: calls at their deadlines, on an asyncio loop."""

from asyncio import get_running_loop
from collections.abc import Callable
from typing import Self

from timers.protocol import Timer
from timers.services.calls import CallScheduler
from timers.services.errors import ServiceClosedError, ServiceStateError
from timers.services.loop_driver import LoopDriver
from timers.services.mailbox import Callback
from timers.validation import shown


class AsyncTimer(CallScheduler):
    """Calls on an asyncio loop, of which only the next expiry is known to the loop.

    `timer` is any empty timer of the registry, or one of your own; the service owns it from now on.
    One unit is `unit_ns` nanoseconds, and deadlines are rounded up to a unit. Callbacks run in the
    loop; all methods may be called from any thread. An exception in a callback goes to the loop's
    exception handler, except that SystemExit and KeyboardInterrupt end the loop, as in asyncio.

    >>> import asyncio
    >>> from timers import HierarchicalWheel
    >>> from timers.services import AsyncTimer
    >>> async def main():
    ...     async with AsyncTimer(HierarchicalWheel()) as timer:
    ...         call = timer.schedule_after(0.001, print, "called")
    ...         await asyncio.sleep(0.01)
    >>> asyncio.run(main())
    called

    Raises:
        ServiceStateError: if no loop runs.
        ParameterError: for a timer that is not empty, or another `unit_ns` than 1 .. 10**18.
    """

    def __init__(self, timer: Timer, *, unit_ns: int = 1_000_000) -> None:
        try:
            self._loop = get_running_loop()
        except RuntimeError:
            raise ServiceStateError("AsyncTimer must be made while its loop runs") from None
        loop = self._loop
        self._driver = LoopDriver(timer, unit_ns, loop, self._call_soon, self._run, "AsyncTimer")
        self._mailbox = self._driver.mailbox

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the service and cancel what is pending."""
        self.close()

    def close(self) -> None:
        """Cancel every pending call and refuse new ones. Closing again is legal."""
        self._driver.close()

    def _call_soon(self, turn: Callable[[], None]) -> None:
        try:
            here = get_running_loop() is self._loop
        except RuntimeError:
            here = False
        try:
            (self._loop.call_soon if here else self._loop.call_soon_threadsafe)(turn)
        except RuntimeError:
            raise ServiceClosedError("the loop of this AsyncTimer is closed") from None

    def _report(self, callback: Callback, error: BaseException) -> None:
        message = f"Exception in callback {shown(callback)} of AsyncTimer"
        self._loop.call_exception_handler({"message": message, "exception": error})
