"""Check a peer on tapes that are made to find faults, and find the smallest tape that fails.

A peer that is right but slow passes; what each operation costs, a re-arm included, and how that
grows with the number pending, is measured and said.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from compare.traffic.tapes.tape import CANCEL, Tape, id_space_of
from compare.trial.oracle.deliveries import (
    Bounds,
    Delivery,
    Fault,
    delivered_text,
    expected_text,
    first_fault,
    ideal,
)
from compare.trial.peers.protocol import Description, PeerError, PeerTimeoutError
from compare.trial.peers.run import Peer
from compare.trial.peers.shrink import shrink
from compare.trial.peers.tapes import Trial, groups, growing, racing, random_tapes
from compare.trial.peers.threads import judge
from timers.errors import TimerError

RANDOM_TAPES = 200
SHRINK_SECONDS = 60.0  # the search for a smaller tape ends then
QUICK_SECONDS = 7.0  # for everything but the search
SHARES = {
    "boundary tape": 0.35,
    "random tape": 0.5,
    "growth": 0.65,
    "workload": 0.75,
    "crowd": 0.85,
    "threaded run": 1.0,
}
"""When each kind of tape ends in a quick check, as a share of its time."""
RANDOM = "random tape"
GROWTH = "growth"
PRODUCERS = "threaded run"
THREADS = (1, 2, 4)
THREADS_SIZE, THREADS_PAIRS = 1_000, 50_000
GROWTH_SIZES = tuple(1000 << k for k in range(6))
ENOUGH_NS = 200_000_000  # a tape that takes longer is the last whose growth is measured
SLOW = 0.6
"""The time of an operation that grows with a higher power of the number pending is called slow."""
BROKEN = "broken"
"""The kind of a fault in which the peer crashed, hung or broke the protocol."""

OPERATIONS = ("start", "cancel", "re-arm", "arm")

Progress = Callable[[str], None]


class CheckError(TimerError, RuntimeError):
    """A check cannot run on this machine."""


@dataclass(frozen=True)
class Failure:
    """A tape on which a peer fails."""

    origin: str  # what was tried
    tape: Tape
    fault: Fault
    rows: Delivery | None  # None if the peer broke the protocol
    repeats: bool = True  # the tape failed when it was run again
    is_small: bool = True  # there is a smallest tape to show


@dataclass
class Verdict:
    """The result of a check."""

    peer: Peer
    description: Description
    seed: int
    tried: dict[str, int] = field(default_factory=dict)  # tapes by kind
    seconds: dict[str, float] = field(default_factory=dict)  # by kind
    skipped: list[str] = field(default_factory=list)  # tapes that the peer cannot do
    growth: dict[str, float] = field(default_factory=dict)
    """For each operation, the power of n that the time of n of them grows with."""
    costs: dict[str, float] = field(default_factory=dict)  #: ns, with `grown_to` timers pending
    grown_to: int = 0  #: pending timers, up to which the growth was measured
    failure: Failure | None = None

    @property
    def slow(self) -> dict[str, float]:
        """The growth of the operations whose time grows with the number pending."""
        return {name: power for name, power in self.growth.items() if power > 1 + SLOW}

    def as_json(self) -> dict[str, Any]:
        """The result as an object."""
        entry: dict[str, Any] = {
            "peer": self.peer.label,
            "description": self.description.as_json(),
            "seed": self.seed,
            "tried": self.tried,
            "skipped": self.skipped,
            "growth": {name: round(power, 2) for name, power in self.growth.items()},
            "slow": sorted(self.slow),
            "ns": self.costs,
            "pending": self.grown_to,
            "passed": self.failure is None,
        }
        if self.failure is not None:
            fault = self.failure.fault
            entry["failure"] = {
                "kind": fault.kind,
                "text": fault.text,
                "operation": fault.operation,
                "found_in": self.failure.origin,
                "repeats": self.failure.repeats,
                "tape": operations_table(self.failure, self.description),
            }
        return entry


def check_peer(
    peer: Peer,
    *,
    seed: int = 0,
    examples: int = RANDOM_TAPES,
    shrink_seconds: float = SHRINK_SECONDS,
    quick: bool = False,
    progress: Progress = lambda step: None,
) -> Verdict:
    """Check a peer until it fails, and find the smallest tape on which it does.

    A quick check tries as much as it can in QUICK_SECONDS. Raises PeerError if the peer cannot
    describe itself, or runs in real time and is not for threads, and CheckError without Hypothesis.
    """
    _import_hypothesis()
    virtual, threads = not peer.description.real_time, peer.description.threads
    if not (virtual or threads):
        raise PeerError(f"{peer.label} runs in real time, in which expiries cannot be checked")
    verdict = Verdict(peer, peer.description, seed)
    search = _Search(peer, verdict, shrink_seconds)
    fixed = groups(seed, quick=quick)
    steps: dict[str, Callable[[], None]] = {
        kind: partial(search.all, kind, trials) for kind, trials in fixed.items()
    }
    steps[RANDOM] = partial(search.random, examples)
    steps[GROWTH] = search.grow
    steps = steps if virtual else {}
    if threads:
        steps[PRODUCERS] = search.produce
    begun = time.monotonic()
    for kind in sorted(steps, key=[*SHARES].index):
        progress(kind)
        started = time.monotonic()
        search.end = begun + SHARES[kind] * QUICK_SECONDS if quick else math.inf
        verdict.tried[kind] = 0
        steps[kind]()
        verdict.seconds[kind] = time.monotonic() - started
        if verdict.failure is not None:
            break
    return verdict


class _Search:
    """Finds the smallest tape on which a peer fails."""

    def __init__(self, peer: Peer, verdict: Verdict, seconds: float) -> None:
        self._peer, self._verdict, self._seconds = peer, verdict, seconds
        self._until: float | None = None  # set when the first tape fails
        self._longest = 0.0  # seconds of a tape
        self.end = math.inf  # no tape is begun later

    def all(self, kind: str, trials: Callable[[], Iterator[Trial]]) -> None:
        """Try all tapes of a kind; make the first that fails smaller."""
        for trial in trials():
            if not self._verdict.description.allows(trial.tape):
                self._verdict.skipped.append(trial.name)
            elif time.monotonic() < self.end:
                self._verdict.tried[kind] += 1
                if self.fails(trial):
                    self.shrink(trial)
                    return

    def grow(self) -> None:
        """Time ever larger tapes, and fit how the time of n operations grows with n."""
        description, times = self._verdict.description, []
        for size in GROWTH_SIZES:
            tape, first, names = growing(size, description.cannot)
            if not description.allows(tape) or time.monotonic() > self.end:
                break
            try:
                lines = self._peer.time(tape, size, phases=first, rounds=3, warm_up=2)
            except PeerError as error:
                fault = Fault(BROKEN, None, str(error))
                self._verdict.failure = Failure(GROWTH, tape, fault, None)
                return
            self._verdict.tried[GROWTH] += 1
            self._verdict.grown_to = size
            each = np.reshape([max(line.cpu_ns, 1) for line in lines], (3, -1)).min(axis=0)
            times.append(each)
            done = [max(line.operations, line.expired, 1) for line in lines[: each.size]]
            costs = (each / done).round(1).tolist()
            self._verdict.costs = dict(zip(names, costs, strict=True))
            if each.sum() > ENOUGH_NS:
                break
        if len(times) > 2:
            powers = np.polyfit(np.log(GROWTH_SIZES[: len(times)]), np.log(times), 1)[0]
            self._verdict.growth = dict(zip(names, powers.tolist(), strict=True))

    def produce(self) -> None:
        """Let several threads start and cancel at once, in real time."""
        tape, first = racing(THREADS_SIZE, THREADS_PAIRS, self._verdict.seed)
        described = self._verdict.description
        for count in THREADS:
            if time.monotonic() > self.end:
                break
            self._verdict.tried[PRODUCERS] += 1
            try:
                ids = id_space_of(tape)
                _, calls = self._peer.threads(tape, ids, count, phases=first, record=True)
                assert calls is not None
                fault = judge(tape, calls, described.threads, described.rounding.tick).fault
            except PeerError as error:
                fault = Fault(BROKEN, None, str(error))
            if fault is not None:
                text = f"with {count} producers, {fault.text}"
                fault = replace(fault, text=text)
                self._verdict.failure = Failure(PRODUCERS, tape, fault, None, is_small=False)
                break

    def fails(self, trial: Trial) -> bool:
        """Whether the peer fails on a tape. The smallest failure is kept. Raises _TimeUp."""
        if self._until is not None and time.monotonic() > self._until:
            raise _TimeUp
        failure = self._run(trial)
        if failure is None:
            return False
        if self._until is None:
            self._until = time.monotonic() + self._seconds
        smallest = self._verdict.failure
        if smallest is None or _size(failure.tape) < _size(smallest.tape):
            self._verdict.failure = failure
        return True

    def shrink(self, trial: Trial) -> None:
        """Leave out operations of a failing tape, and run the smallest once more."""
        with suppress(_TimeUp):
            shrink(trial.tape, lambda tape: self.fails(Trial(trial.name, tape)))
        smallest = self._verdict.failure
        assert smallest is not None
        again = self._run(Trial(smallest.origin, smallest.tape), patience=50)
        if again is None:
            fault, rows = smallest.fault, smallest.rows
            again = Failure(smallest.origin, smallest.tape, fault, rows, repeats=False)
        self._verdict.failure = again

    def random(self, examples: int) -> None:
        """Try random tapes; Hypothesis makes one that fails smaller."""
        from hypothesis import HealthCheck, given, settings
        from hypothesis import seed as with_seed
        from hypothesis.errors import Flaky

        name = RANDOM
        if not examples:
            return

        @with_seed(self._verdict.seed)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )
        @given(tape=random_tapes(self._verdict.description))
        def attempt(tape: Tape) -> None:
            if self._until is None:
                if time.monotonic() > self.end:
                    return
                self._verdict.tried[name] += 1
            with suppress(_TimeUp):
                if self.fails(Trial(name, tape)):
                    raise _Failed

        # A peer that does not always fail, and the end of the time, look flaky to Hypothesis.
        with suppress(_Failed, Flaky):
            attempt()
        if self._verdict.failure is not None:
            self.shrink(Trial(name, self._verdict.failure.tape))

    def _run(self, trial: Trial, patience: float = 10) -> Failure | None:
        """Run a tape. Once one has failed, `patience` times the usual time is the limit."""
        description, peer = self._verdict.description, self._peer
        if self._until is not None:
            usual = max(self._longest, 0.1)
            peer = replace(peer, timeout=min(peer.timeout, patience * usual))
        started = time.monotonic()
        bounds = description.rounding.bounds(trial.tape)
        fifo = description.order == "fifo"
        try:
            rows = peer.check(trial.tape, trial.id_space)
        except PeerTimeoutError as error:
            is_larger = trial.tape.time.size > self._verdict.grown_to
            if self._until is None and self._verdict.slow and is_larger:
                self._verdict.skipped.append(f"{trial.name} (it takes too long)")
                return None
            return Failure(trial.name, trial.tape, Fault(BROKEN, None, str(error)), None)
        except PeerError as error:
            return Failure(trial.name, trial.tape, Fault(BROKEN, None, str(error)), None)
        if self._until is None:
            self._longest = max(self._longest, time.monotonic() - started)
        fault = first_fault(trial.tape, trial.id_space, bounds, rows, fifo=fifo)
        return Failure(trial.name, trial.tape, fault, rows) if fault else None


class _Failed(Exception):
    """The peer fails on a tape."""


class _TimeUp(Exception):
    """The time for the search is up."""


def _size(tape: Tape) -> tuple[int, int]:
    """Tapes with fewer operations are smaller, and then those with smaller numbers."""
    return tape.time.size, sum(int(column.astype(object).sum()) for column in tape)


def _import_hypothesis() -> None:
    try:
        import hypothesis  # noqa: F401
    except ModuleNotFoundError:
        raise CheckError("wheelwork check needs Hypothesis: pip install hypothesis") from None


def operations_table(failure: Failure, description: Description) -> list[dict[str, Any]]:
    """The operations of a failing tape, with what must come out and what did.

    There are none of a run with threads, whose order nobody knows.
    """
    if not failure.is_small:
        return []
    tape, rows = failure.tape, failure.rows
    bounds = description.rounding.bounds(tape)
    delivered: Mapping[int, list[str]] = _delivered(tape, rows) if rows else {}
    table = []
    for k, expected in enumerate(_expected(tape, bounds)):
        op = int(tape.op[k])
        table.append(
            {
                "number": k,
                "time": int(tape.time[k]),
                "operation": OPERATIONS[op],
                "id": int(tape.id[k]),
                "deadline": None if op == CANCEL else int(tape.deadline[k]),
                "expected": expected,
                "delivered": "; ".join(delivered.get(k, [])) or None,
            }
        )
    return table


def _delivered(tape: Tape, rows: Delivery) -> dict[int, list[str]]:
    texts: dict[int, list[str]] = {}
    for operation, before, clock in zip(
        rows.operation.tolist(), rows.before.tolist(), rows.clock.tolist(), strict=True
    ):
        text = delivered_text(before, clock, tape.time.size)
        texts.setdefault(operation, []).append(text)
    return texts


def _expected(tape: Tape, bounds: Bounds) -> Iterator[str | None]:
    armed, taken = ideal(tape, id_space_of(tape), bounds)
    for k in range(tape.time.size):
        if not armed[k]:
            yield None
        elif taken[k] >= 0:
            how = "cancelled" if tape.op[taken[k]] == CANCEL else "re-armed"
            yield f"{how} by {taken[k]}"
        else:
            yield expected_text(k, bounds)
