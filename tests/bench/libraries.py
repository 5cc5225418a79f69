"""Run the libraries that are installed on loops of `wheel_event_loop`, with real connections.

    python -m tests.bench.libraries

aiohttp, httpx, websockets, uvicorn, gRPC and Twisted: each makes requests of a server of its own on
the loop, and lets one run into a timeout. Prints a line for each; one that is not installed is
skipped. With Twisted, it counts the turns of a chain of `callLater(0)` beside asyncio's own loop.
"""

import asyncio
import importlib.util
import subprocess
import sys
import time

from timers.services import wheel_event_loop

SLOW_S = 30.0
TIMEOUT_S = 0.05  # long enough to go through the timer
TURNS_S = 0.5


async def with_aiohttp():
    from aiohttp import ClientSession, ClientTimeout, web

    async def answer(request):
        await asyncio.sleep(float(request.query["wait"]))
        return web.Response(text="ok")

    app = web.Application()
    app.add_routes([web.get("/", answer)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    async with ClientSession() as session:
        url = f"http://127.0.0.1:{port}/?wait="
        async with session.get(url + "0.02") as reply:
            assert await reply.text() == "ok"
        await times_out(session.get(url + str(SLOW_S), timeout=ClientTimeout(TIMEOUT_S)))
    await runner.cleanup()


async def with_uvicorn_and_httpx():
    import httpx
    import uvicorn

    async def app(scope, receive, send):
        await asyncio.sleep(float(scope["query_string"].decode() or 0))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    options = {
        "port": 0,
        "log_level": "critical",
        "lifespan": "off",
        "timeout_graceful_shutdown": 1,
    }
    server = uvicorn.Server(uvicorn.Config(app, **options))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient() as client:
        url = f"http://127.0.0.1:{port}/?"
        assert (await client.get(url + "0.02")).text == "ok"
        await times_out(client.get(url + str(SLOW_S), timeout=TIMEOUT_S))
    server.should_exit = True
    await serving


async def with_websockets():
    from websockets.asyncio.client import connect
    from websockets.asyncio.server import serve

    async def echo(connection):
        async for message in connection:
            await connection.send(message)

    async with serve(echo, "127.0.0.1", 0, ping_interval=0.02) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}", ping_interval=0.02) as client:
            await client.send("ok")
            assert await client.recv() == "ok"
            await times_out(asyncio.wait_for(client.recv(), TIMEOUT_S))


async def with_grpc():
    import grpc

    async def answer(request, context):
        await asyncio.sleep(float(request))
        return b"ok"

    server = grpc.aio.server()
    methods = {"wait": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        wait = channel.unary_unary("/test/wait")
        assert await wait(b"0.02") == b"ok"
        await times_out(wait(str(SLOW_S).encode(), timeout=TIMEOUT_S))
    await server.stop(0)


async def times_out(awaitable):
    """The call ends with an error, about when its timeout has passed."""
    start = time.monotonic()
    try:
        await awaitable
    except Exception:  # each library has its own
        assert TIMEOUT_S * 0.9 <= time.monotonic() - start < SLOW_S / 2
    else:
        raise AssertionError("it did not time out")


TWISTED = """
import sys, time
from timers.services import wheel_event_loop
from twisted.internet import asyncioreactor
import asyncio
loop = wheel_event_loop() if sys.argv[1] == "wheel" else asyncio.new_event_loop()
asyncioreactor.install(loop)
from twisted.internet import reactor
turns, end = 0, time.process_time() + float(sys.argv[2])
def again():
    global turns
    turns += 1
    if time.process_time() < end:
        reactor.callLater(0, again)
    else:
        reactor.callLater(0.02, reactor.stop)
reactor.callLater(0, again)
reactor.run()
print(turns)
"""


def turns_of_twisted():
    """The turns of a chain of `callLater(0)` on the wheel's loop, to those on asyncio's."""
    counts = []
    for kind in ("asyncio", "wheel"):
        command = (sys.executable, "-c", TWISTED, kind, str(TURNS_S))
        counts.append(int(subprocess.run(command, capture_output=True, check=True).stdout))
    return f"{counts[1] / counts[0]:.2f} of the turns of asyncio's loop"


LIBRARIES = {
    "aiohttp": (("aiohttp",), with_aiohttp),
    "uvicorn and httpx": (("uvicorn", "httpx"), with_uvicorn_and_httpx),
    "websockets": (("websockets",), with_websockets),
    "gRPC": (("grpc",), with_grpc),
}


def main():
    bases = [None]
    if importlib.util.find_spec("uvloop"):
        import uvloop

        bases.append(uvloop.Loop)
    for name, (modules, run) in LIBRARIES.items():
        if missing := [each for each in modules if importlib.util.find_spec(each) is None]:
            print(f"{name}: skipped, {missing[0]} is not installed")
            continue
        for base in bases:
            with asyncio.Runner(loop_factory=wheel_event_loop(base=base)) as runner:
                runner.run(run())
            print(f"{name}: as expected on {'asyncio' if base is None else 'uvloop'}", flush=True)
    if importlib.util.find_spec("twisted"):
        print(f"Twisted: {turns_of_twisted()}")
    else:
        print("Twisted: skipped, it is not installed")


if __name__ == "__main__":
    main()
