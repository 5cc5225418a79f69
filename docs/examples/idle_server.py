"""A TCP server that echoes what it receives and closes connections that are silent for too long.

The detector knows when each connection last sent something. Five times per timeout the server asks
it which ones are idle; the others cost nothing.

>>> asyncio.run(main())
chatty: b'hello'
silent: closed
"""

import asyncio
from contextlib import suppress
from typing import Self

from timers.services import IdleDetector


class Connection(asyncio.Protocol):
    """A connection, and its key in the detector."""

    transport: asyncio.Transport

    def __init__(self, server: "EchoServer") -> None:
        self.server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.touch(self)

    def data_received(self, data: bytes) -> None:
        self.server.touch(self)
        self.transport.write(data)

    def eof_received(self) -> bool:
        return True  # a client that sends nothing more may read until it is idle

    def connection_lost(self, error: Exception | None) -> None:
        self.server.detector.remove(self)


class EchoServer:
    """Closes connections that are idle for `timeout` seconds, up to a fifth of that late."""

    def __init__(self, timeout: float) -> None:
        self.tick = timeout / 5
        self.detector = IdleDetector(timeout, self.tick)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self.time, self.start = loop.time, loop.time()
        self.server = await loop.create_server(
            lambda: Connection(self), "127.0.0.1", 0, backlog=1000
        )
        self.port = self.server.sockets[0].getsockname()[1]
        self.closer = asyncio.create_task(self.close_idle_connections())
        return self

    async def __aexit__(self, *error: object) -> None:
        self.server.close()
        self.closer.cancel()
        with suppress(asyncio.CancelledError):
            await self.closer

    def now(self) -> float:
        """Seconds since the server started."""
        return self.time() - self.start

    def touch(self, connection: Connection) -> None:
        """Note that a connection has sent something."""
        self.detector.touch(connection, at=self.now())

    async def close_idle_connections(self) -> None:
        """Run until the server closes."""
        while True:
            await asyncio.sleep(self.tick)
            for connection in self.detector.advance(self.now()):
                connection.transport.abort()


async def main() -> None:
    """Open one connection that keeps sending, and one that does not."""
    async with EchoServer(timeout=0.5) as server:
        silent, other = await asyncio.open_connection("127.0.0.1", server.port)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for _ in range(12):
            writer.write(b"hello")
            answer = await reader.read(100)
            await asyncio.sleep(0.05)
        print("chatty:", answer)
        print("silent:", "closed" if await silent.read(1) == b"" else "open")
        for stream in (other, writer):
            stream.close()


if __name__ == "__main__":
    asyncio.run(main())
