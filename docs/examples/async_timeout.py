"""Timeouts in asyncio; the loop only sees the next one.

>>> asyncio.run(main())
answer 1
no answer in time
"""

import asyncio

from timers import HierarchicalWheel
from timers.services import AsyncTimer


async def ask(delay: float) -> str:
    """A server that takes `delay` seconds."""
    await asyncio.sleep(delay)
    return "answer 1"


async def main() -> None:
    """Ask twice."""
    with AsyncTimer(HierarchicalWheel()) as timer:
        async with timer.timeout(5.0):
            print(await ask(0))
        try:
            await timer.wait_for(ask(60), 0.01)
        except TimeoutError:
            print("no answer in time")


if __name__ == "__main__":
    asyncio.run(main())
