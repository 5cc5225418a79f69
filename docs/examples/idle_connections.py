"""Idle connections: close a connection that has sent nothing for 30 seconds.

Each connection has one timer. Every message moves the timer's deadline with `reschedule`, which
keeps the handle. `reschedule` returns False if the timer has fired, so a message that comes too
late opens a new connection.
"""

import random

from timers import CascadingWheel

IDLE = 30_000  # ms

timer = CascadingWheel()
handle_of: dict[str, int] = {}  # client -> handle of its connection's timer
client_of: dict[int, str] = {}  # and back
opened = closed = 0


def close_idle_connections(now: int) -> None:
    """Advance the clock and close the connections that have been idle too long."""
    global closed
    for handle in timer.advance(now).handles.tolist():
        del handle_of[client_of.pop(handle)]
        closed += 1


def message(client: str, now: int) -> None:
    """Handle a message from a client."""
    global opened
    close_idle_connections(now)
    handle = handle_of.get(client)
    if handle is None or not timer.reschedule(handle, now + IDLE):
        handle = timer.schedule(now + IDLE)
        handle_of[client], client_of[handle] = handle, client
        opened += 1


rng = random.Random(1)
now = 0
for _ in range(5_000):
    now += rng.randrange(40)  # ms until the next message
    message(f"client-{rng.randrange(2_000)}", now)

print(f"after {now / 1000:.0f} s: {opened} connections opened, {closed} closed, {len(timer)} open")
close_idle_connections(now + IDLE)
print(f"{IDLE / 1000:.0f} s later: {closed} closed, {len(timer)} open")

assert opened == closed
