"""An aiohttp server and its client in one program, to be recorded. It needs `pip install aiohttp`.

    wheelwork record --out aiohttp.trace -- python docs/examples/aiohttp_server.py
    wheelwork replay aiohttp.trace --timers hierarchical-wheel,delay-queue

Nothing in it knows of the recorder. The client's timeouts, the server's keep-alive and the work of
the handler are timers; most of them are cancelled.
"""

import asyncio
import random

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

REQUESTS, AT_ONCE = 2000, 50
TIMEOUT = ClientTimeout(total=2.0)  # the first answers of a slow machine may take a second
AT_MOST = 60.0  # seconds


async def answer(request: web.Request) -> web.Response:
    """Work for some milliseconds, under a timeout."""
    async with asyncio.timeout(1.0):
        await asyncio.sleep(random.expovariate(200))
    return web.Response(text="ok")


async def ask(session: ClientSession, url: str, requests: int) -> int:
    """Ask one request after the other; return how many were answered."""
    answered = 0
    for _ in range(requests):
        try:
            async with session.get(url, timeout=TIMEOUT) as response:
                answered += await response.text() == "ok"
        except TimeoutError:
            pass
    return answered


async def main() -> None:
    """Serve, ask, and stop."""
    application = web.Application()
    application.router.add_get("/", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        async with (
            asyncio.timeout(AT_MOST),
            ClientSession(connector=TCPConnector(limit=AT_ONCE)) as session,
        ):
            clients = (
                ask(session, f"http://{host}:{port}/", REQUESTS // AT_ONCE) for _ in range(AT_ONCE)
            )
            print(sum(await asyncio.gather(*clients)), "answers")
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
