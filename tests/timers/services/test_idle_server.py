"""The example server with real connections: silent, chatty and half-open ones."""

import asyncio
import runpy
import socket
from contextlib import suppress
from pathlib import Path

from timers.services import IdleDetector

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "idle_server.py"
EACH = 30  # of each kind: 180 open files are allowed everywhere
TIMEOUT = 0.5


def test_the_silent_and_the_half_open_are_closed():
    example = runpy.run_path(str(EXAMPLE))
    heard = {}  # connection -> when, in seconds
    idle_for = {}  # peer -> seconds without a packet when the server closed it

    class Noting(IdleDetector):
        """A detector that notes when it heard from whom, and whom it found."""

        def touch(self, connection, at):
            heard[connection] = at
            super().touch(connection, at)

        def advance(self, now):
            idle = super().advance(now)
            for connection in idle:
                peer = connection.transport.get_extra_info("peername")
                idle_for[peer] = now - heard[connection]
            return idle

    async def connect(port):
        end = socket.socket()
        end.setblocking(False)
        await asyncio.get_running_loop().sock_connect(end, ("127.0.0.1", port))
        return end

    async def main():
        loop = asyncio.get_running_loop()
        async with example["EchoServer"](TIMEOUT) as server:
            server.detector = Noting(TIMEOUT, server.tick)
            last = loop.time()
            ends = [await connect(server.port) for _ in range(3 * EACH)]
            silent, chatty, half_open = (ends[first::3] for first in range(3))
            names = [{end.getsockname() for end in some} for some in (silent, chatty, half_open)]
            for end in half_open:
                with suppress(OSError):  # on a busy machine, it is closed already
                    end.send(b"last words")
                    end.shutdown(socket.SHUT_WR)
            longest_gap = loop.time() - last
            last = loop.time()
            give_up = last + 20
            while not names[0] | names[2] <= set(idle_for) and loop.time() < give_up:
                for end in chatty:
                    with suppress(ConnectionError):
                        end.send(b"x")
                await asyncio.sleep(TIMEOUT / 20)
                last, gap = loop.time(), loop.time() - last
                longest_gap = max(longest_gap, gap)
            # On a machine so busy that the chatty ones could not send in time, they are idle, too.
            if longest_gap < TIMEOUT / 2:
                assert set(idle_for) == names[0] | names[2]
                assert len(server.detector) == EACH
                assert max(idle_for.values()) < 2 * TIMEOUT
            assert names[0] | names[2] <= set(idle_for)
            assert min(idle_for.values()) >= TIMEOUT
            async with asyncio.timeout(10):
                for end in silent + half_open:
                    with suppress(ConnectionResetError):
                        while await loop.sock_recv(end, 100):
                            pass
            for end in chatty:
                if end.getsockname() not in idle_for:
                    assert end.recv(1) == b"x"
            for end in ends:
                end.close()
            while len(server.detector) and loop.time() < give_up:
                await asyncio.sleep(0.01)  # until the server has heard of it
            assert len(server.detector) == 0

    IdleDetector()  # compiles what the server needs
    asyncio.run(main())
