"""Tests of an asyncio program in virtual time, with pytest.

The program sends a heartbeat every hour, and gives up when no answer comes for three hours. The
tests run it for a day, in a moment.

>>> test_it_beats_once_an_hour()
>>> test_it_gives_up_after_three_hours_of_silence()
"""

import asyncio

from timers.services import ManualClock, wheel_event_loop


async def heartbeats(send, answer):
    """Send a heartbeat every hour, until none is answered for three hours."""
    try:
        while True:
            send()
            await asyncio.wait_for(answer(), timeout=3 * 3600)
            await asyncio.sleep(3600)
    except TimeoutError:
        return "gave up"


def run(main):
    """Run a coroutine on a loop whose clock jumps to the next deadline instead of waiting."""
    clock = ManualClock(autojump=True)
    with asyncio.Runner(loop_factory=wheel_event_loop(clock=clock)) as runner:
        return runner.run(main), clock.now() / 1e9


def test_it_beats_once_an_hour():
    """A day has 24 heartbeats."""
    sent = []

    async def main():
        task = asyncio.create_task(heartbeats(lambda: sent.append(1), lambda: asyncio.sleep(0)))
        await asyncio.sleep(24 * 3600 - 1)
        task.cancel()

    run(main())
    assert len(sent) == 24


def test_it_gives_up_after_three_hours_of_silence():
    """An answer that takes weeks is not waited for."""
    result, seconds = run(heartbeats(lambda: None, lambda: asyncio.sleep(10**6)))
    assert result == "gave up"
    assert round(seconds) == 3 * 3600


if __name__ == "__main__":
    test_it_beats_once_an_hour()
    test_it_gives_up_after_three_hours_of_silence()
    print("A day of heartbeats has passed.")
