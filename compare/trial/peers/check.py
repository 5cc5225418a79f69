"""Check a peer on tapes that are made to find faults, and find the smallest tape that fails."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

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
from compare.trial.peers.protocol import Description, PeerError
from compare.trial.peers.run import Peer
from compare.trial.peers.shrink import shrink
from compare.trial.peers.tapes import Trial, groups, random_tapes
from timers.errors import TimerError

RANDOM_TAPES = 200
SHRINK_SECONDS = 60.0  # the search for a smaller tape ends then
RANDOM = "random tape"
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


@dataclass
class Verdict:
    """The result of a check."""

    peer: Peer
    description: Description
    seed: int
    tried: dict[str, int] = field(default_factory=dict)  # tapes by kind
    skipped: list[str] = field(default_factory=list)  # tapes that the peer cannot do
    failure: Failure | None = None

    def as_json(self) -> dict[str, Any]:
        """The result as an object."""
        entry: dict[str, Any] = {
            "peer": self.peer.label,
            "description": self.description.as_json(),
            "seed": self.seed,
            "tried": self.tried,
            "skipped": self.skipped,
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
    progress: Progress = lambda step: None,
) -> Verdict:
    """Check a peer until it fails, and find the smallest tape on which it does.

    Raises PeerError if the peer cannot describe itself or runs in real time, and CheckError without
    Hypothesis.
    """
    _import_hypothesis()
    if peer.description.real_time:
        raise PeerError(f"{peer.label} runs in real time, in which expiries cannot be checked")
    verdict = Verdict(peer, peer.description, seed)
    search = _Search(peer, verdict, shrink_seconds)
    for kind, trials in groups(seed).items():
        progress(kind)
        verdict.tried[kind] = 0
        for trial in trials():
            if not verdict.description.allows(trial.tape):
                verdict.skipped.append(trial.name)
                continue
            verdict.tried[kind] += 1
            if search.fails(trial):
                search.shrink(trial)
                return verdict
        if kind == "boundary tape" and examples:
            progress(RANDOM)
            if search.random(examples):
                return verdict
    return verdict


class _Search:
    """Finds the smallest tape on which a peer fails."""

    def __init__(self, peer: Peer, verdict: Verdict, seconds: float) -> None:
        self._peer, self._verdict, self._seconds = peer, verdict, seconds
        self._until: float | None = None  # set when the first tape fails

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
        again = self._run(Trial(smallest.origin, smallest.tape))
        if again is None:
            fault, rows = smallest.fault, smallest.rows
            again = Failure(smallest.origin, smallest.tape, fault, rows, repeats=False)
        self._verdict.failure = again

    def random(self, examples: int) -> bool:
        """Try random tapes; Hypothesis makes one that fails smaller."""
        from hypothesis import HealthCheck, given, settings
        from hypothesis import seed as with_seed
        from hypothesis.errors import Flaky

        name = RANDOM
        self._verdict.tried[name] = 0

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
                self._verdict.tried[name] += 1
            with suppress(_TimeUp):
                if self.fails(Trial(name, tape)):
                    raise _Failed

        # A peer that does not always fail, and the end of the time, look flaky to Hypothesis.
        with suppress(_Failed, Flaky):
            attempt()
        if self._verdict.failure is None:
            return False
        self.shrink(Trial(name, self._verdict.failure.tape))
        return True

    def _run(self, trial: Trial) -> Failure | None:
        description = self._verdict.description
        bounds = description.rounding.bounds(trial.tape)
        fifo = description.order == "fifo"
        try:
            rows = self._peer.check(trial.tape, trial.id_space)
        except PeerError as error:
            return Failure(trial.name, trial.tape, Fault(BROKEN, None, str(error)), None)
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
    """The operations of a failing tape, with what must come out and what did."""
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
