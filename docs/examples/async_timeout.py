"""Timeouts in asyncio, on a loop whose timeouts are in a timing wheel.

>>> with asyncio.Runner(loop_factory=wheel_event_loop) as runner:
...     runner.run(main())
answer 1
no answer in time
"""

import asyncio

from timers.services import wheel_event_loop


async def ask(delay: float) -> str:
    """A server that takes `delay` seconds."""
    await asyncio.sleep(delay)
    return "answer 1"


async def main() -> None:
    """Ask twice."""
    async with asyncio.timeout(5.0):
        print(await ask(0))
    try:
        await asyncio.wait_for(ask(60), 0.01)
    except TimeoutError:
        print("no answer in time")


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=wheel_event_loop) as runner:
        runner.run(main())
