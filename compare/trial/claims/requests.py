"""Claims about what a timeout costs a Python program with asyncio, aiohttp, or our timers."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from compare.trial.bench.callers import PYTHON, measure, plan_of
from compare.trial.claims.base import (
    HOLDS,
    ONLY_WHEN,
    WRONG,
    Experiment,
    Figures,
    Verdict,
    figures,
    missing,
    number,
)
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import OverBudgetError
from compare.trial.results.schema import Row
from timers.registry import names

STREAM, AIOHTTP = "asyncio stream", "aiohttp"
CLAIMED = 0.135
TIMEOUT = 30.0  # seconds; no request takes as long
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nok"
_QUESTION = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

Request = Callable[[], Awaitable[Any]]
Guard = Callable[[], AbstractAsyncContextManager[Any]]


def _serve(sender: Connection) -> None:
    """Answer every request of every connection, in a process of its own."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(_ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        sender.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


@asynccontextmanager
async def _streams(port: int) -> AsyncIterator[Request]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def request() -> None:
        writer.write(_QUESTION)
        await reader.readexactly(len(_ANSWER))

    try:
        yield request
    finally:
        writer.close()


@asynccontextmanager
async def _sessions(port: int) -> AsyncIterator[Request]:
    from aiohttp import ClientSession, ClientTimeout

    url = f"http://127.0.0.1:{port}/"
    async with ClientSession(timeout=ClientTimeout(total=None)) as session:

        async def request() -> None:
            async with session.get(url) as response:
                await response.read()

        yield request


async def _sample(request: Request, requests: int, guard: Guard) -> float:
    """The CPU time of this thread for a request, in us."""
    started = time.thread_time()
    for _ in range(requests):
        async with guard():
            await request()
    return 1e6 * (time.thread_time() - started) / requests


async def _pairs(client: Any, port: int, requests: int, rounds: int) -> list[tuple[float, float]]:
    """Samples with a timeout and without, in turns."""
    guards: list[Guard] = [lambda: asyncio.timeout(TIMEOUT), nullcontext]
    async with client(port) as request:
        await _sample(request, requests // 4, guards[0])
        return [
            (
                await _sample(request, requests, guards[0]),
                await _sample(request, requests, guards[1]),
            )
            for _ in range(rounds)
        ]


def _requests(quick: bool) -> Iterator[Row]:
    context = get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    server = context.Process(target=_serve, args=(sender,), daemon=True)
    server.start()
    try:
        port = receiver.recv()
        for name, client in ((STREAM, _streams), (AIOHTTP, _sessions)):
            try:
                pairs = asyncio.run(_pairs(client, port, 500, 5 if quick else 15))
            except ModuleNotFoundError:
                yield missing(name, "is not installed: pip install aiohttp")
                continue
            for repeat, (with_timeout, without) in enumerate(pairs):
                yield from figures(name, None, repeat, with_timeout=with_timeout, without=without)
    finally:
        server.kill()
        server.join()


REQUESTS = Experiment(
    "cost of a request",
    "CPU time of the client for a request over a connection that stays open, under one "
    "asyncio.timeout and without, in turns; the server is another process.",
    _requests,
    timed=True,
)


def saves_a_seventh(found: Figures) -> Verdict:
    """Claim 29."""
    times = {
        who: [found.time(who, metric) for metric in ("with_timeout", "without")]
        for who in (AIOHTTP, STREAM)
    }
    saved = {who: 1 - without / with_timeout for who, (with_timeout, without) in times.items()}
    text = "; ".join(
        f"{times[who][0]:.1f} µs with {who}, of which the timeout is {100 * share:.1f} %"
        for who, share in saved.items()
    )
    text = f"A request takes {text}."
    near = {who: CLAIMED / 2 <= share <= 2 * CLAIMED for who, share in saved.items()}
    if near[AIOHTTP]:
        return Verdict(HOLDS, text)
    if near[STREAM]:
        return Verdict(ONLY_WHEN, text, "the request is as cheap as one over a bare stream")
    return Verdict(WRONG, text)


# ---- which timer

PENDING = 10_000
MATTERS = 0.05


def _timers(quick: bool) -> Iterator[Row]:
    plan = plan_of(PYTHON, PENDING)
    for label in names():  # compile outside the samples
        with suppress(OverBudgetError):
            measure(PYTHON, contestant(label), plan_of(PYTHON, 100))
    for repeat in range(3 if quick else 7):
        for label in names():
            try:
                pair, _, step = measure(PYTHON, contestant(label), plan)
            except OverBudgetError as error:
                yield missing(label, str(error))
                continue
            yield from figures(label, PENDING, repeat, pair_time=pair, step_time=step)
    for row in _requests(quick):
        if row.contestant == STREAM and row.metric == "without":
            yield row


TIMERS = Experiment(
    "timers of a Python program",
    f"A schedule and a cancel from Python with {PENDING:,} timers pending, and a step of the "
    "clock, beside the CPU time of a request over a bare asyncio stream.",
    _timers,
    "timers",
    timed=True,
)


def which_hardly_matters(found: Figures) -> Verdict:
    """Claim 30."""
    request = 1e3 * found.time(STREAM, "without")
    cost = {
        who: found.value(who, "pair_time", PENDING) + found.value(who, "step_time", PENDING)
        for who in found.contestants("pair_time")
    }
    least = min(cost.values())
    matters = [who for who, each in cost.items() if each - least > MATTERS * request]
    alike = {who: each for who, each in cost.items() if who not in matters}
    text = (
        f"A request takes {request / 1e3:.1f} µs. Its timeout, with a step of the clock, takes "
        f"{number(least)} ns with the fastest timer and {number(max(alike.values()))} ns with the "
        f"slowest of {len(alike)} that differ by at most 5 % of the request."
    )
    if not matters:
        return Verdict(HOLDS, text)
    slowest = max(cost, key=lambda who: cost[who])
    text += f" {slowest} takes {number(cost[slowest])} ns."
    if len(alike) > len(matters):
        *others, last = matters
        these = f"{', '.join(others)} or {last}" if others else last
        return Verdict(ONLY_WHEN, text, f"it is not {these}")
    return Verdict(WRONG, text)
