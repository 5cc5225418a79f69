"""A program that uses the public types; `nox -s types` checks it outside the checkout."""

import numpy as np
import numpy.typing as npt

from timers import (
    CascadingWheel,
    Expired,
    HashedWheel,
    HeapqDelayQueue,
    Timer,
    TimerError,
    place_of,
    timer_class,
)
from timers.services import SystemTimer


def drain(timer: Timer, payloads: list[str]) -> list[str]:
    """The payloads of the timers that fire at the next expiry."""
    moment = timer.next_expiry()
    if moment is None:
        return []
    expired: Expired = timer.advance(moment)
    return [payloads[place_of(handle)] for handle in expired.handles.tolist()]


def answer(number: int, text: str) -> None:
    """A callback."""


def schedule() -> None:
    """Calls whose arguments are checked."""
    with SystemTimer(CascadingWheel()) as timer:
        timer.schedule_after(60, answer, 1, "a")
        timer.schedule_after(60, answer, 1)  # type: ignore[arg-type]  # one is missing
        timer.schedule_at(60, answer, "a", 1)  # type: ignore[arg-type]  # in another order
        timer.schedule_every(60, answer, 1, "a", first=1)


def main() -> None:
    timers: list[Timer] = [HashedWheel(tick=100, wheel_size=8), HeapqDelayQueue(start=5)]
    timers.append(timer_class("delay-queue")())
    for timer in timers:
        try:
            handles: npt.NDArray[np.int64] = timer.schedule_many([10, 20])
            cancelled: npt.NDArray[np.bool_] = timer.cancel_many(handles[:1])
        except TimerError as error:
            print(error)
        print(cancelled.tolist(), timer.traits.name, drain(timer, ["a", "b"]))


if __name__ == "__main__":
    main()
