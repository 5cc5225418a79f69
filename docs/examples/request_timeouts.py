"""Request timeouts, thousands at a time, with the payloads in arrays beside the timer.

`place_of(handle)` is a small index that belongs to the timer while it is pending. So the data of
requests can be kept in plain arrays, with one element per place. The batch forms take and return
arrays and cost a few nanoseconds per timer.
"""

import numpy as np

from timers import HashedWheel, place_of

TIMEOUT = 5_000  # ms
BATCH = 1_000  # requests sent in each step of 100 ms

timer = HashedWheel(tick=10, wheel_size=1024)  # fires 1 to 10 ms late
rng = np.random.default_rng(1)

user = np.zeros(BATCH, np.int64)  # payloads, by place
sent_at = np.zeros(BATCH, np.int64)


def grown(column: np.ndarray, size: int) -> np.ndarray:
    """The column with room for `size` places; doubling keeps this rare."""
    if size <= column.size:
        return column
    larger = np.zeros(max(size, 2 * column.size), column.dtype)
    larger[: column.size] = column
    return larger


sent = answered = timed_out = 0
waiting = np.empty(0, np.int64)  # handles of the requests that may still be answered
for now in range(0, 20_000, 100):
    expired = timer.advance(now)
    places = place_of(expired.handles)
    waited = now - sent_at[places]
    assert np.all(waited == TIMEOUT + 100)  # the first step after the timeout
    timed_out += places.size
    if places.size and now == 10_000:
        print(f"at 10 s, {places.size} requests time out, of users {user[places][:3]} and others")

    # 98 % of the last requests are answered. `cancel_many` returns which were pending.
    is_answered = rng.random(waiting.size) < 0.98
    answered += np.count_nonzero(timer.cancel_many(waiting[is_answered]))

    waiting = timer.schedule_many(np.full(BATCH, now + TIMEOUT))
    places = place_of(waiting)
    user, sent_at = grown(user, places.max() + 1), grown(sent_at, places.max() + 1)
    user[places], sent_at[places] = rng.integers(0, 1_000, BATCH), now
    sent += BATCH

print(f"{sent} requests: {answered} answered, {timed_out} timed out, {len(timer)} pending")
print(f"the payloads took {user.size} places")

assert sent == answered + timed_out + len(timer)
