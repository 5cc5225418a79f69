"""Models of event sets, and mixes of timers as programs have them; see `catalogue`.

The first three are from the literature on priority queues, where they show how an implementation
depends on the order of its operations (Jones, "An Empirical Comparison of Priority-Queue and
Event-Set Implementations", 1986; Rönngren & Ayani, "A Comparative Study of Parallel and Sequential
Priority Queue Algorithms", 1997).
"""

from collections.abc import Mapping

import numpy as np

from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START
from compare.traffic.workloads.generator import Block
from compare.traffic.workloads.stream import BLOCK, CHOICE, DELAY, GAP, LENGTH, Stream
from compare.traffic.workloads.variates import Floats, log
from timers.arrays import Int32s, Int64s

Parameters = Mapping[str, int]


def hold(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    """A timer expires whenever another one starts, so that the number pending is constant.

    The deadlines of a block are the arrivals of a later block, in random order.
    """
    span = BLOCK * 1000.0 / float(parameters["rate"])
    order = np.argsort(stream.uniform(CHOICE, BLOCK))
    deadlines = stream.arrivals(span, parameters["blocks"])[order][: starts.size]
    return Block(starts, deadlines, deadlines)


def up_down(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    """The timers of a period all expire soon after its end."""
    period = parameters["period"]
    within = stream.uniform(DELAY, starts.size) * float(parameters["drain"])
    deadlines = (starts // period + 1) * period + within.astype(np.int64)
    return Block(starts, deadlines, deadlines)


def markov(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    """A timer is re-armed or cancelled at random, or expires; each arming has a new delay."""
    rearms = _geometric(stream.uniform(LENGTH, starts.size), parameters["rearmed"])
    delays = stream.uniform(DELAY, int(rearms.sum()) + starts.size) * float(parameters["longest"])
    return _lives(stream, starts, rearms, 1 + delays.astype(np.int64), parameters["cancelled"])


def cache(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    """An entry has one of three times to live; it may be written again, and evicted."""
    kinds = stream.uniform(DELAY, starts.size)
    factors = np.array([1, 5, 60])[np.searchsorted([0.6, 0.9], kinds)]
    rearms = _geometric(stream.uniform(LENGTH, starts.size), parameters["written"])
    delays = np.repeat(parameters["ttl"] * factors, rearms + 1)
    return _lives(stream, starts, rearms, delays, parameters["evicted"])


def _geometric(uniform: Floats, per_thousand: int) -> Int64s:
    """How often something happens before it fails to happen for the first time."""
    if not per_thousand:
        return np.zeros(uniform.size, np.int64)
    times = log(uniform) / log(np.array([per_thousand / 1000.0]))
    return np.asarray(times.astype(np.int64))


def _lives(stream: Stream, starts: Int64s, rearms: Int64s, delays: Int64s, cancelled: int) -> Block:
    """Members that are re-armed some times, and then cancelled (per thousand) or expire.

    `delays` has one for each arming, by member. Each operation comes at a random moment before the
    deadline of the arming before.
    """
    armings = rearms + 1
    member = np.repeat(np.arange(starts.size, dtype=np.int32), armings)
    waits = (stream.uniform(GAP, delays.size) * delays.astype(np.float64)).astype(np.int64)
    last = np.cumsum(armings) - 1
    elapsed = np.concatenate([[0], np.cumsum(waits)])
    before = elapsed[:-1] - np.repeat(elapsed[last + 1 - armings], armings)
    armed_at = starts[member] + before
    is_last = np.zeros(delays.size, np.bool_)
    is_last[last] = True
    ends_early = stream.uniform(CHOICE, starts.size) * 1000.0 < float(cancelled)
    has_next = ~is_last | ends_early[member]
    ops = np.where(is_last, CANCEL, REARM).astype(np.int8)
    following = np.append(delays[1:], 0)
    ends = armed_at[last] + np.where(ends_early, waits[last], delays[last])
    chosen = np.flatnonzero(has_next)
    return Block(
        starts,
        starts + delays[last + 1 - armings],
        ends,
        member[chosen],
        (armed_at + waits)[chosen],
        ops[chosen],
        following[chosen],
    )


SERVER_TIMERS = 5
IDLE, PACE, REQUEST, DEADLINE, KEEP_ALIVE = range(SERVER_TIMERS)


def server(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    """Connections with five timers each.

    Each request re-arms the idle timeout, starts a pace timer, which always expires, and starts a
    timeout and a deadline, which the answer cancels. The answer re-arms the keep-alive timer. A
    connection whose request is lost has no further ones.
    """
    kinds = np.arange(starts.size) % SERVER_TIMERS
    opened = starts[::SERVER_TIMERS]
    pace, timeout = parameters["pace"], parameters["timeout"]
    requests = 1 + _geometric(
        stream.uniform(LENGTH, opened.size), 1000 - 1000 // parameters["requests"]
    )
    total, last = int(requests.sum()), np.cumsum(requests) - 1
    connection = np.repeat(np.arange(opened.size), requests)
    latencies, pauses = (
        (-log(stream.uniform(purpose, total)) * float(parameters[mean])).astype(np.int64)
        for purpose, mean in ((DELAY, "latency"), (GAP, "pause"))
    )
    lost = np.zeros(total, np.bool_)
    lost[last] = stream.uniform(CHOICE, opened.size) * 1000.0 < float(parameters["lost"])
    answers = np.where(lost, timeout, np.minimum(1 + latencies, timeout - 1))
    # The next request comes after the answer, and after the pace timer has expired.
    waits = np.maximum(answers, pace) + 1 + pauses
    elapsed = np.concatenate([[0], np.cumsum(waits)])
    begun = opened[connection] + elapsed[:-1] - elapsed[last + 1 - requests][connection]
    is_first = np.zeros(total, np.bool_)
    is_first[last + 1 - requests] = True
    delays = np.array([parameters["idle"], pace, timeout, 2 * timeout, parameters["keep_alive"]])

    rows: list[tuple[Int64s, Int64s, int, int]] = []  # connections, times, op, kind
    again, answered = np.flatnonzero(~is_first), np.flatnonzero(~lost)
    answered_at = begun + answers
    rows.append((again, begun[again], ARM, IDLE))
    rows += [(again, begun[again], START, kind) for kind in (PACE, REQUEST, DEADLINE)]
    rows += [(answered, answered_at[answered], CANCEL, kind) for kind in (REQUEST, DEADLINE)]
    rows.append((answered, answered_at[answered], ARM, KEEP_ALIVE))
    member = np.concatenate([connection[at] * SERVER_TIMERS + kind for at, _, _, kind in rows])
    times = np.concatenate([moments for _, moments, _, _ in rows])
    ops = np.concatenate([np.full(at.size, op, np.int8) for at, _, op, _ in rows])
    known = member < starts.size  # the last connection of a block has fewer timers
    order = np.lexsort((times, member))
    order = order[known[order]]
    member, times, ops = member[order], times[order], ops[order]
    later = np.where(ops == CANCEL, 0, delays[member % SERVER_TIMERS])
    begin = opened[np.arange(starts.size) // SERVER_TIMERS]
    ends = begin + delays[kinds]
    np.maximum.at(ends, member, times + later)
    return Block(begin, begin + delays[kinds], ends, member.astype(np.int32), times, ops, later)


MOST_RETRIES = 8


def retries(stream: Stream, starts: Int64s, parameters: Parameters) -> Block:
    """Requests with a timeout each; after a failure, a timer with exponential backoff expires.

    Each retry waits twice as long as the one before, times a random factor from 0.5 to 1.5.
    """
    failed = _geometric(stream.uniform(LENGTH, starts.size), parameters["failed"])
    attempts = np.minimum(failed, MOST_RETRIES) + 1
    total, last = int(attempts.sum()), np.cumsum(attempts) - 1
    first = last + 1 - attempts
    member = np.repeat(np.arange(starts.size, dtype=np.int32), attempts)
    retry = np.arange(total) - first[member]
    timeout = parameters["timeout"]
    latencies = -log(stream.uniform(DELAY, total)) * float(parameters["latency"])
    answers = 1 + np.minimum(latencies, float(timeout - 2)).astype(np.int64)
    jitter = 0.5 + stream.uniform(GAP, total)
    backoff = 1 + (jitter * float(parameters["backoff"]) * np.ldexp(1.0, retry)).astype(np.int64)
    elapsed = np.concatenate([[0], np.cumsum(answers + backoff)])
    begun = starts[member] + elapsed[:-1] - elapsed[first][member]
    # An attempt: its start, the cancel by the answer, and the start of the backoff.
    ops = np.tile(np.array([START, CANCEL, START], np.int8), total)
    times = np.column_stack([begun, begun + answers, begun + answers]).ravel()
    delays = np.column_stack([np.full(total, timeout), np.zeros(total, np.int64), backoff]).ravel()
    keep = np.ones(3 * total, np.bool_)
    keep[3 * first] = False  # the members' starts
    keep[3 * last + 2] = False  # no backoff after success
    ends = begun[last] + answers[last]
    of_member: Int32s = np.repeat(member, 3)
    return Block(
        starts, starts + timeout, ends, of_member[keep], times[keep], ops[keep], delays[keep]
    )
