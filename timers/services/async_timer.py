"""`AsyncTimer`: calls at their deadlines, on an asyncio loop."""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from functools import partial
from typing import Self

from timers.protocol import Timer
from timers.services.call_runner import CallRunner
from timers.services.calls import Callback, CallScheduler
from timers.services.errors import ServiceStateError
from timers.services.loop_driver import LoopDriver
from timers.services.pending import Entry
from timers.validation import shown


class AsyncTimer(CallScheduler):
    """Calls on an asyncio loop, of which only the next expiry is known to the loop.

    `timer` is any empty timer of the registry, or one of your own; the service owns it from now on.
    One unit is `unit_ns` nanoseconds, and deadlines are rounded up to a unit. Callbacks run in the
    loop, behind what is ready when they become due. As with the loop's own methods, only its thread
    may use the service; others use `loop.call_soon_threadsafe`. An exception in a callback goes to
    the loop's exception handler, except that SystemExit and KeyboardInterrupt end the loop, as in
    asyncio. With `max_pending`, a call beyond that number is refused.

    Raises:
        ServiceStateError: if no loop runs.
        ParameterError: for a timer that is not empty, another `unit_ns` than 1 .. 10**18, or a
            `max_pending` below 1.
    """

    def __init__(
        self, timer: Timer, *, unit_ns: int = 1_000_000, max_pending: int | None = None
    ) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise ServiceStateError("AsyncTimer must be made while its loop runs") from None
        # One context for all turns, which never overlap.
        call_at = partial(self._loop.call_at, context=Context())
        self._driver = LoopDriver(timer, unit_ns, self._loop, call_at, "AsyncTimer", max_pending)
        self._pending = self._driver.pending
        self._runner = CallRunner(self._pending, partial(_report, self._loop))
        self._driver.run_next = self._runner.run_next

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the service and cancel what is pending."""
        self.close()

    def close(self) -> None:
        """Cancel every pending call and refuse new ones. Closing again is legal."""
        self._driver.close()

    def _admit(self, entries: Sequence[Entry]) -> None:
        self._pending.check_thread()
        super()._admit(entries)


def _report(
    loop: asyncio.AbstractEventLoop, callback: Callback | None, error: BaseException
) -> None:
    message = f"Exception in callback {shown(callback)} of AsyncTimer"
    loop.call_exception_handler({"message": message, "exception": error})
