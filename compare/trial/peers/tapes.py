"""Tapes that are made to find faults: boundary cases, workloads, crowds, and random tapes.

The boundary cases are inputs that implementations were held to, or got wrong.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from compare.traffic.tapes.tape import ARM, CANCEL, DTYPES, REARM, START, Tape, id_space_of
from compare.traffic.workloads.catalogue import WORKLOADS, make
from compare.trial.peers.protocol import Description
from timers.arrays import Int64s
from timers.limits import LIMIT

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Row = tuple[int, int, int, int]
"""An operation: time, op, id and deadline."""

EDGES = (2**31, 2**32, 2**53, LIMIT)
"""Where 32-bit integers, unsigned ones, doubles and 64-bit integers end."""
WORKLOAD_TIMERS = 2000
CROWD = 1_000_000  # timers due at one moment


class Trial(NamedTuple):
    """A tape with the name of what it tries."""

    name: str
    tape: Tape

    @property
    def id_space(self) -> int:
        """The id space of the tape."""
        return id_space_of(self.tape)


def tape_of(rows: Iterable[Row]) -> Tape:
    """Make a tape of (time, op, id, deadline) rows."""
    columns = list(zip(*rows, strict=True)) or [()] * len(DTYPES)
    return Tape(*map(np.array, columns, DTYPES))


def groups(seed: int, *, quick: bool = False) -> dict[str, Callable[[], Iterator[Trial]]]:
    """The kinds of fixed tapes, the cheapest first; each is made when it is needed.

    If `quick`, the small boundary cases come one after the other in one tape, and the crowd is
    smaller.
    """
    return {
        "boundary tape": lambda: boundary_tapes(quick=quick),
        "workload": lambda: _workloads(seed),
        "crowd": lambda: crowds(CROWD // 100 if quick else CROWD),
    }


# ---- boundary cases


def _starts(*deadlines: int, at: int = 0) -> list[Row]:
    return [(at, START, i, deadline) for i, deadline in enumerate(deadlines)]


def _small() -> dict[str, list[Row]]:
    """Cases that start at 0 and end below 2**17; they are also tried from later starts."""
    rounds = [*range(5), *range(10, 100), *range(10, 100), *range(100, 500)]
    slots = [
        2**bits * turn + off for bits in range(1, 13) for turn in (1, 2, 3) for off in (-1, 0, 1)
    ]
    return {
        "deadlines in the past": _starts(5, 9, 10, 11, 0, at=10),
        "a deadline in the past, alone": [(10, START, 0, 3)],
        "overdue while others become due": [
            *_starts(10, 11, 12),
            (10, START, 3, 4),
            (12, START, 4, 12),
            (12, CANCEL, 4, 0),
        ],
        "delays over several rotations": _starts(*rounds),
        "delays over several rotations, clock unit by unit": [
            *_starts(*rounds),
            *((now, ARM, len(rounds), now + 7) for now in range(1, 520)),
        ],
        "around multiples of powers of two": _starts(*slots),
        "around multiples of powers of two, from 5": _starts(*(slot + 5 for slot in slots), at=5),
        "all levels of a walk-through": _starts(9, 88, 222, 520, 521, 522),
        "across the wrap of a wheel of 256": [
            (0, START, 0, 250),
            (250, START, 1, 255),
            (250, START, 2, 256),
            (250, START, 3, 259),
            (260, START, 4, 260 + 256),
            (300, START, 5, 512),
        ],
        "a later timer does not hide an earlier one": [
            *_starts(10_000, 600),
            (250, START, 2, 400),
            (250, START, 3, 300),
        ],
        "apart": [*_starts(15, 80), (45, START, 2, 90), (70, START, 3, 90), (90, START, 4, 91)],
        "everything cancelled": [
            *_starts(*range(1, 400)),
            *((0, CANCEL, i, 0) for i in range(399)),
            (400, START, 0, 401),
        ],
        "cancel twice, and after the expiry": [
            *_starts(5, 5, 9),
            (1, CANCEL, 0, 0),
            (1, CANCEL, 0, 0),
            (6, CANCEL, 1, 0),
            (6, REARM, 1, 20),
            (7, START, 3, 30),
            (8, CANCEL, 1, 0),
        ],
        "cancel and re-arm at the moment of the expiry": [
            *_starts(5, 5, 6, 6),
            (5, CANCEL, 0, 0),
            (5, REARM, 1, 9),
            (6, ARM, 2, 9),
            (6, CANCEL, 3, 0),
        ],
        "cancel and re-arm one unit before the expiry": [
            *_starts(5, 5, 6),
            (4, CANCEL, 0, 0),
            (4, REARM, 1, 9),
            (5, ARM, 2, 9),
        ],
        "an overdue timer is cancelled and re-armed": [
            (10, START, 0, 3),
            (10, CANCEL, 0, 0),
            (10, START, 1, 3),
            (10, REARM, 1, 12),
            (10, START, 2, 10),
            (10, ARM, 2, 11),
        ],
        "re-arms": [
            *_starts(5, 200, 8, 300, 40),
            (1, REARM, 0, 10),
            (2, REARM, 2, 2),
            (2, REARM, 3, 100),
            (2, REARM, 4, 40),
            (80, REARM, 1, 120),
            (90, ARM, 0, 95),
        ],
        "a timer touched many times": [
            (0, START, 0, 30),
            *((now, ARM, 0, now + 30) for now in range(0, 400, 7)),
        ],
        "ids used again while their timers are pending": [
            (0, START, 0, 10),
            (1, START, 0, 12),
            (2, START, 0, 11),
            (3, CANCEL, 0, 0),
            (4, START, 0, 10),
            (5, REARM, 0, 20),
            (11, CANCEL, 0, 0),
        ],
        "a stale timer and the next one in its place": [
            *((turn * 10, START, turn % 3, turn * 10 + 5) for turn in range(30)),
            *((300 + turn, CANCEL, turn % 3, 0) for turn in range(3)),
            *((303, START, i, 320) for i in range(3)),
            (303, CANCEL, 1, 0),
        ],
        "head, middle and tail of a bucket are cancelled": [
            *_starts(*[5000] * 5, *[300] * 5, *[65_000] * 5),
            *((1, CANCEL, i + group, 0) for group in (0, 5, 10) for i in (0, 2, 4)),
            (290, CANCEL, 1, 0),
        ],
        "equal deadlines, some armed again": [
            *_starts(*[50] * 8),
            (10, REARM, 2, 50),
            (20, REARM, 0, 50),
            (20, CANCEL, 4, 0),
            (30, START, 8, 50),
        ],
        "falling deadlines": _starts(*range(300, 0, -1)),
        "one bucket, many rotations": _starts(*(7 + 64 * turn for turn in range(300))),
    }


def boundary_tapes(*, quick: bool = False) -> Iterator[Trial]:
    """The boundary cases; if `quick`, without the small ones that later tapes repeat."""
    small = _small()
    for name, rows in small.items():
        if not quick or len(rows) >= 50:
            yield Trial(name, tape_of(rows))
    everything = [rows for rows in small.values() if len(rows) < 50]
    for start in (1, 255, 256, 65_535, *(edge - 100 for edge in EDGES[:3]), 2**40, 2**62):
        yield Trial(
            f"small cases one after the other, from {start}", tape_of(_chained(everything, start))
        )
    yield from _edges()
    yield from _idle()


def _chained(cases: Iterable[list[Row]], start: int) -> Iterator[Row]:
    """Cases one after the other, each with ids of its own, from a later start."""
    ids = 0
    for rows in cases:
        for time, op, i, deadline in rows:
            yield start + time, op, ids + i, (start + deadline) * (op != CANCEL)
        start += max(max(time, deadline) for time, _, _, deadline in rows)
        ids += 1 + max(i for _, _, i, _ in rows)


def _edges() -> Iterator[Trial]:
    for edge in EDGES:
        name = f"2^{edge.bit_length() - 1}" if edge != LIMIT else "2^63 - 1"
        near = [min(edge + off, LIMIT) for off in range(-2, 4)]
        yield Trial(f"delays around {name}", tape_of(_starts(*near)))
        yield Trial(f"deadlines around {name}", tape_of(_starts(*near, at=edge - 5)))
        mixed = [
            *_starts(*near, 3, at=1),
            (2, REARM, 0, near[1]),
            (2, CANCEL, 2, 0),
            (3, ARM, 5, 7),
            (9, REARM, 4, 12),
        ]
        yield Trial(f"far timers around {name} cancelled and re-armed", tape_of(mixed))


def _idle() -> Iterator[Trial]:
    for far in (10**5, 10**6, 10**9, 2**31, 2**40, 2**62):
        alone = [(0, START, 0, 5), (far, START, 1, far + 5), (far + 9, START, 2, far + 10)]
        yield Trial(f"{far} idle units", tape_of(alone))
        waiting = [*_starts(far - 1, far, far + 1, far + 300), *alone[1:]]
        yield Trial(f"{far} units with timers waiting", tape_of(waiting))


def _workloads(seed: int) -> Iterator[Trial]:
    for name in WORKLOADS:
        yield Trial(name, make(name, timers=WORKLOAD_TIMERS, seed=seed).tape)


def crowds(most: int) -> Iterator[Trial]:
    """A hundredth of `most` timers due at one moment, and `most`."""
    for crowd in (most // 100, most):
        op, time = np.full(crowd, START, np.int8), np.zeros(crowd, np.int64)
        tape = Tape(time, op, np.arange(crowd, dtype=np.int32), np.full(crowd, 1000))
        yield Trial(f"{crowd:,} timers due at one moment", tape)


class Growth(NamedTuple):
    """A tape whose times show how a cost grows: its phases, and what each does."""

    tape: Tape
    first: tuple[int, ...]
    names: tuple[str, ...]  # the last is the drain's


def growing(size: int, cannot: Collection[str] = ()) -> Growth:
    """Starts `size` timers, re-arms all at random, cancels half, and lets the others fire."""
    random = np.random.default_rng(size)
    zeros = np.zeros(size, np.int64)

    def rows(op: int, ids: Int64s) -> Int64s:
        deadlines = zeros if op == CANCEL else size + random.permutation(size)
        columns = (zeros, zeros + op, ids, deadlines)
        return np.column_stack([column[: ids.size] for column in columns])

    phases = {"start": rows(START, np.arange(size))}
    if "re-arm" not in cannot:
        phases["re-arm"] = rows(REARM, random.permutation(size))
    if "cancel" not in cannot:
        phases["cancel"] = rows(CANCEL, random.permutation(size)[: size // 2])
    columns = zip(np.vstack([*phases.values()]).T, DTYPES, strict=True)
    first = np.cumsum([0, *(len(each) for each in phases.values())])[:-1]
    tape = Tape(*(column.astype(kind) for column, kind in columns))
    return Growth(tape, tuple(first.tolist()), (*phases, "expiry"))


# ---- threads

RACING = 256  # ids whose timers are due soon
_RACES = 8  # one of so many pairs is of these
_SOON, _FAR = (1, 6), (60_000, 120_000)  # delays of these, and of the others, which never fire


def racing(size: int, pairs: int, seed: int = 0) -> tuple[Tape, tuple[int, ...]]:
    """A tape for producers, with its phases: `size` starts; pairs of a cancel and a start; cancels.

    A unit is a millisecond. One of _RACES pairs is of timers that are due at once: with an even id,
    it cancels one that may be due meanwhile; with an odd one, it starts two, which must come out.
    """
    random = np.random.default_rng(seed)
    every = np.arange(RACING + size)
    among = random.integers(0, RACING, pairs)
    far = RACING + random.integers(0, size, pairs)
    ids = np.where(random.random(pairs) < 1 / _RACES, among, far).repeat(2)
    op = np.tile([CANCEL, START], pairs)
    op[(ids < RACING) & (ids % 2 == 1)] = START
    id_ = np.concatenate([every, ids, every[RACING:]])
    op = np.concatenate([0 * every + START, op, 0 * every[RACING:] + CANCEL])
    delay = random.integers(*_FAR, id_.size)
    soon = id_ < RACING
    delay[soon] = random.integers(*_SOON, soon.sum())
    columns = (np.zeros_like(id_), op, id_, delay * (op == START))
    tape = Tape(*(column.astype(kind) for column, kind in zip(columns, DTYPES, strict=True)))
    return tape, (0, every.size, every.size + ids.size)


# ---- random tapes

_BEGINNINGS = (0, 1, 255, 256, *(edge - 40 for edge in EDGES[:3]), 2**40, LIMIT - 10**6)
_STEPS = (0, 0, 0, 1, 1, 2, 7, 63, 64, 100, 256, 300)
_DELAYS = (*range(13), -1, -3, 63, 64, 65, 99, 100, 101, 255, 256, 257, 4096, 5000, 2**33)
_IDS = 5
_FIRST = {CANCEL: START, REARM: ARM}
"""The first operation on an id has to start a timer."""


def random_tapes(peer: Description | None = None, longest: int = 40) -> "SearchStrategy[Tape]":
    """Tapes over a few ids that keep every rule, within what a peer can do; short ones first."""
    from hypothesis import assume
    from hypothesis import strategies as st

    peer = peer or Description("any", "any", "any")
    limits = peer.limits
    last, longest_delay, longest_step = (
        limit or LIMIT for limit in (limits.time, limits.delay, limits.step)
    )
    kept = {*range(ARM + 1)} - {{"cancel": CANCEL, "re-arm": REARM}[name] for name in peer.cannot}
    ops = [op for op in (START, CANCEL, REARM, ARM) if op in kept]
    if "re-arm" in peer.cannot:
        ops.remove(ARM)
    delays = [delay for delay in _DELAYS if delay <= min(longest_delay, longest_step)]
    steps = [step for step in _STEPS if step <= longest_step]
    begin = st.sampled_from([time for time in _BEGINNINGS if time <= last // 2 or time == 0])
    row = st.tuples(
        st.sampled_from(steps),
        st.integers(0, _IDS - 1),
        st.sampled_from(ops),
        st.sampled_from(delays),
    )

    def build(begin: int, drawn: list[tuple[int, int, int, int]]) -> Tape:
        now, rows, started = begin, [], set()
        for step, i, op, delay in drawn:
            now = min(now + step, last)
            if i not in started:
                op = _FIRST.get(op, op) if "re-arm" not in peer.cannot else START
            started.add(i)
            rows.append((now, op, i, 0 if op == CANCEL else min(max(now + delay, 0), last)))
        tape = tape_of(rows)
        assume(peer.allows(tape))
        return tape

    return st.builds(build, begin, st.lists(row, max_size=longest))
