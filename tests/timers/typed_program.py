"""A program that uses the public types; `nox -s types` checks it outside the checkout."""

import numpy as np
import numpy.typing as npt

from timers import Expired, HashedWheel, HeapqDelayQueue, Timer, TimerError, place_of, timer_class


def drain(timer: Timer, payloads: list[str]) -> list[str]:
    """The payloads of the timers that fire at the next expiry."""
    moment = timer.next_expiry()
    if moment is None:
        return []
    expired: Expired = timer.advance(moment)
    return [payloads[place_of(handle)] for handle in expired.handles.tolist()]


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
