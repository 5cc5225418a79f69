"""Claims about what a timeout costs a Python program with asyncio, aiohttp, or our timers."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from math import isqrt
from multiprocessing import get_context
from multiprocessing.connection import Connection
from statistics import mean, median
from typing import Any

from compare.trial.bench.callers import PYTHON, measure, plan_of
from compare.trial.claims.base import (
    HOLDS,
    ONLY_WHEN,
    WRONG,
    Experiment,
    Figures,
    Undecided,
    Verdict,
    figures,
    missing,
    number,
    rule,
)
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import OverBudgetError
from compare.trial.results.schema import Row
from timers.registry import names

STREAM, AIOHTTP = "asyncio stream", "aiohttp"
CLAIMED = 0.135
TIMEOUT = 30.0  # seconds; no request takes as long
TURN = 20  # requests, with a timeout and without by turns
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


async def _spent(request: Request, guard: Guard) -> float:
    """The CPU time of this thread for a turn of requests, in us for each."""
    started = time.thread_time()
    for _ in range(TURN):
        async with guard():
            await request()
    return 1e6 * (time.thread_time() - started) / TURN


async def _pairs(client: Any, port: int, turns: int, rounds: int) -> list[list[float]]:
    """Samples with a timeout and without, in each round.

    A sample has many short turns, so that the machine disturbs both alike.
    """
    guards: list[Guard] = [lambda: asyncio.timeout(TIMEOUT), nullcontext]
    pairs = []
    async with client(port) as request:
        for _ in range(1 + rounds):  # the first warms up
            spent = [[await _spent(request, guard) for guard in guards] for _ in range(turns)]
            pairs.append([mean(each) for each in zip(*spent, strict=True)])
    return pairs[1:]


def _requests(quick: bool) -> Iterator[Row]:
    context = get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    server = context.Process(target=_serve, args=(sender,), daemon=True)
    server.start()
    try:
        port = receiver.recv()
        for name, client in ((STREAM, _streams), (AIOHTTP, _sessions)):
            try:
                pairs = asyncio.run(_pairs(client, port, 10, 20 if quick else 80))
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


@rule(
    "Holds if the share of a timeout in an aiohttp request is within a factor of two of that; "
    "holds only for a bare stream if it is so there alone; not decided if the interval of the "
    "median of the rounds includes a bound."
)
def saves_a_seventh(found: Figures) -> Verdict:
    """Claim 29."""
    shares = {
        who: sorted(1 - ratio for ratio in found.ratios(who, "without", "with_timeout"))
        for who in (AIOHTTP, STREAM)
    }
    text = "; ".join(
        f"{found.value(who, 'with_timeout'):.1f} µs with {who}, of which the timeout is "
        f"{100 * median(each):.1f} %"
        for who, each in shares.items()
    )
    text = f"A request takes {text}."

    def near(who: str) -> bool:
        # The true median is within sqrt(n) places of the middle one with a probability over 90 %.
        place, reach = len(shares[who]) // 2, isqrt(len(shares[who]))
        middle = shares[who][max(place - reach, 0) : place + reach + 1]
        answers = {CLAIMED / 2 <= share <= 2 * CLAIMED for share in middle}
        if len(answers) > 1:
            ends = f"between {100 * middle[0]:.1f} and {100 * middle[-1]:.1f} %"
            raise Undecided(f"The rounds do not tell: with {who}, the timeout is {ends}")
        return answers.pop()

    if near(AIOHTTP):
        return Verdict(HOLDS, text)
    if near(STREAM):
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


@rule(
    f"A timer matters if a schedule, a cancel and a step cost more than those of the fastest "
    f"by over {100 * MATTERS:.0f} % of a request. Holds if none does; holds only "
    "without those that do, if they are a minority."
)
def which_hardly_matters(found: Figures) -> Verdict:
    """Claim 30."""
    request = 1e3 * found.value(STREAM, "without")
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
