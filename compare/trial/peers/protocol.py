"""The protocol of peers in Python: what `describe` and `time` print, and when a peer's timers fire.

docs/peers.md is the specification.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from compare.traffic.tapes.tape import CANCEL, REARM, Tape
from compare.trial.oracle.deliveries import Bounds
from timers.arrays import Int64s
from timers.errors import TimerError
from timers.limits import LIMIT
from timers.rounding import Rounding

PROTOCOL = 1
"""The version of the protocol."""

ROUNDINGS = ("exact", "late", "up", "down", "share")
REARMS = ("", "in place", "cancel and start")
ORDERS = ("fifo", "unspecified")
ONCE, MAY_OVERLAP = "once", "may overlap"
THREADS = ("", ONCE, MAY_OVERLAP)
"""Not for threads; what was cancelled does not run; or what is due may run all the same."""
DRAINS = ("unit", "wake-up")
CANNOT = ("cancel", "re-arm")
"""Operations that a peer may lack. It gets no tapes with these."""


class PeerError(TimerError, RuntimeError):
    """A peer cannot be started or breaks the protocol. The message is one line with its name."""


class PeerTimeoutError(PeerError):
    """A command of a peer did not end in time."""


@dataclass(frozen=True)
class PeerRounding:
    """The moments at which a peer's timers may fire, relative to their deadlines.

    `tick` is in units. For "share", a timer is late by at most `share` of its delay, a fraction
    below 1, or by `tick` if that is more.
    """

    kind: Literal["exact", "late", "up", "down", "share"] = "exact"
    tick: int = 1
    share: tuple[int, int] = (0, 1)

    def bounds(self, tape: Tape) -> Bounds:
        """The bounds of the timer that each operation arms; meaningless for a cancel.

        >>> from compare.traffic.tapes.tape import DTYPES
        >>> tape = Tape(*(np.array([value], dtype) for value, dtype in zip((5, 0, 0, 12), DTYPES)))
        >>> PeerRounding("down", 10).bounds(tape).earliest.tolist()
        [5]
        """
        deadline, armed_at = tape.deadline, tape.time
        due = np.maximum(deadline, armed_at)
        match self.kind:
            case "exact":
                return Bounds(due, due)
            case "down":
                earliest = np.maximum(armed_at, deadline - (self.tick - 1))
                return Bounds(np.minimum(earliest, due), due)
            case "late":
                return Bounds(due, _later(due, np.full(due.size, self.tick)))
            case "up":
                earliest = _later(due, (deadline > armed_at).astype(np.int64))
                return Bounds(earliest, _later(due, np.full(due.size, self.tick)))
            case "share":
                numerator, denominator = self.share
                delay = due - armed_at
                late = delay // denominator * numerator
                late -= -(delay % denominator * numerator) // denominator  # rounded up
                return Bounds(due, _later(due, np.maximum(late, self.tick)))

    @property
    def text(self) -> str:
        """The rounding in words."""
        match self.kind:
            case "exact":
                return "exact"
            case "late":
                return f"late by 0 to {self.tick}"
            case "up":
                return f"late by 1 to {self.tick}" if self.tick > 1 else "late by 1"
            case "down":
                return f"early by up to {self.tick - 1}"
            case "share":
                return f"late by up to {self.share[0]}/{self.share[1]} of the delay"

    @property
    def lateness(self) -> tuple[int, int]:
        """The least and the greatest lateness, in units; LIMIT for a share of the delay."""
        match self.kind:
            case "exact":
                return 0, 0
            case "down":
                return 1 - self.tick, 0
            case "late" | "up":
                return 0, self.tick
            case "share":
                return 0, LIMIT

    @classmethod
    def of(cls, rounding: Rounding) -> "PeerRounding":
        """The bounds of a closed form, for delays that it does not cut."""
        if rounding.direction == "levels":
            return cls("share", share=(8, 63))
        return cls(rounding.direction, rounding.tick)


def _later(moments: Int64s, units: Int64s) -> Int64s:
    """The sum, which ends at the last moment."""
    return np.minimum(moments, LIMIT - units) + units


@dataclass(frozen=True)
class Limits:
    """Tapes beyond these limits are not given to a peer; in units, None for no limit."""

    time: int | None = None  #: largest time or deadline
    delay: int | None = None  #: longest time from arming to the deadline
    equal: int | None = None  #: largest number of timers with one deadline
    step: int | None = None  #: longest advance in one step, also from expiry to expiry in the drain

    def allow(self, tape: Tape) -> bool:
        """Whether a tape is within the limits."""
        arms = tape.op != CANCEL
        if not arms.any():
            return True
        deadline, armed_at = tape.deadline[arms], tape.time[arms]
        last = np.maximum(deadline, armed_at).max()
        moments = np.unique(np.concatenate([tape.time, np.maximum(deadline, armed_at)]))
        actual = {
            "time": last,
            "delay": (deadline - armed_at).max(),
            "equal": np.unique(deadline, return_counts=True)[1].max(),
            "step": np.diff(moments).max(initial=0),
        }
        return all(limit is None or actual[name] <= limit for name, limit in vars(self).items())


@dataclass(frozen=True)
class Description:
    """The output of `PEER describe`."""

    name: str
    language: str
    scheme: str
    library: str = ""
    version: str = ""
    rounding: PeerRounding = PeerRounding()
    order: str = "unspecified"
    drain: str = "wake-up"
    rearm: str = ""  # how a re-arm is done, if it is known
    threads: str = ""  # one of THREADS
    parameters: Mapping[str, int] = field(default_factory=dict)
    cannot: tuple[str, ...] = ()
    limits: Limits = Limits()
    notes: Mapping[str, Any] = field(default_factory=dict)
    real_time: bool = False

    @property
    def library_text(self) -> str:
        """The library with its version."""
        return " ".join(filter(None, (self.library, self.version)))

    @property
    def fires(self) -> str:
        """The rounding in words; nothing is known of a peer in real time."""
        return "in real time" if self.real_time else self.rounding.text

    def allows(self, tape: Tape) -> bool:
        """Whether the peer can do a tape."""
        needed = {"cancel": CANCEL, "re-arm": REARM}
        lacks = any((tape.op == needed[name]).any() for name in self.cannot)
        # An arm of a pending timer re-arms it.
        lacks |= "re-arm" in self.cannot and bool((tape.op > REARM).any())
        return not lacks and self.limits.allow(tape)

    def as_json(self) -> dict[str, Any]:
        """The object that `describe` prints."""
        entry: dict[str, Any] = {"protocol": PROTOCOL}
        for part in fields(self):
            entry[part.name] = getattr(self, part.name)
        share = {"share": list(self.rounding.share)} if self.rounding.kind == "share" else {}
        entry["rounding"] = {"kind": self.rounding.kind, "tick": self.rounding.tick, **share}
        entry["limits"] = {name: limit for name, limit in vars(self.limits).items() if limit}
        return entry | {"cannot": list(self.cannot)}


def parse_description(text: str) -> Description:
    """Parse the output of `describe`. Raises ValueError, which says what is wrong.

    >>> parse_description('{"protocol": 1, "name": "x", "language": "C", "scheme": "heap"}').order
    'unspecified'
    """
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("describe must print a JSON object")
    if value.get("protocol") != PROTOCOL:
        raise ValueError(f"protocol is {value.get('protocol')!r}; this release speaks {PROTOCOL}")
    for name in ("name", "language", "scheme"):
        _check(value, name, lambda entry: _is_line(entry) and entry != "", "text in one line")
    for name in ("library", "version"):
        _check(value, name, _is_line, "text in one line", optional=True)
    for name in ("parameters", "notes"):
        _check(value, name, lambda entry: isinstance(entry, dict), "an object", optional=True)
    _check(value, "real_time", lambda entry: isinstance(entry, bool), "true or false", True)
    words = (("order", ORDERS), ("drain", DRAINS), ("rearm", REARMS), ("threads", THREADS))
    for name, known in words:
        _check(value, name, known.__contains__, " or ".join(filter(None, known)), optional=True)
    cannot = value.get("cannot", [])
    if not isinstance(cannot, list) or not all(entry in CANNOT for entry in cannot):
        raise ValueError(f"cannot is {cannot!r:.60}; it must be a list of {' and '.join(CANNOT)}")
    limits = value.get("limits", {})
    names = {part.name for part in fields(Limits)}
    if not isinstance(limits, dict) or not limits.keys() <= names:
        raise ValueError(f"limits is {limits!r:.60}; it may have {', '.join(sorted(names))}")
    for name in limits:
        _check(limits, name, _is_count, "a positive integer")
    members = {part.name for part in fields(Description)}
    given = {name: entry for name, entry in value.items() if name in members}
    return Description(
        **given
        | {
            "rounding": _parse_rounding(value.get("rounding", {"kind": "exact"})),
            "cannot": tuple(cannot),
            "limits": Limits(**limits),
        }
    )


def _parse_histogram(value: Any) -> tuple[int, ...]:
    is_list = isinstance(value, list) and len(value) <= BINS
    if not is_list or not all(type(count) is int and count >= 0 for count in value):
        raise ValueError(f"histogram is {value!r:.60}; it must be a list of up to {BINS} counts")
    return tuple(value)


def _parse_rounding(value: Any) -> PeerRounding:
    if not isinstance(value, dict):
        raise ValueError(f"rounding is {value!r:.60}; it must be an object")
    _check(value, "kind", ROUNDINGS.__contains__, ", ".join(ROUNDINGS))
    _check(value, "tick", _is_count, "a positive integer", optional=True)
    share = value.get("share", [0, 1])
    is_pair = isinstance(share, list) and [type(part) for part in share] == [int, int]
    if not is_pair or not 0 <= share[0] < share[1] <= 2**31:
        raise ValueError(f"share is {share!r:.60}; it must be two integers, such as [8, 63]")
    return PeerRounding(value["kind"], value.get("tick", 1), (share[0], share[1]))


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable()


def _is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value <= LIMIT


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(type(count) is int for count in value.values())


def _check(
    value: Mapping[str, Any],
    name: str,
    holds: Callable[[Any], bool],
    rule: str,
    optional: bool = False,
) -> None:
    if name not in value:
        if optional:
            return
        raise ValueError(f"{name} is missing")
    entry = value[name]
    if isinstance(entry, list) or not holds(entry):
        raise ValueError(f"{name} is {entry!r:.60}; it must be {rule}")


@dataclass(frozen=True)
class PhaseTime:
    """The figures of one phase of a tape in one round: a line of `PEER time`."""

    round: int
    phase: int  #: the drain is the last
    operations: int
    expired: int
    wall_ns: int
    thread_ns: int | None = None  #: CPU time of the thread
    process_ns: int | None = None  #: CPU time of all threads
    memory_bytes: int | None = None  #: growth of the process, from the tape to the most pending
    counts: Mapping[str, int] = field(default_factory=dict)  #: work up to the end of the phase
    histogram: tuple[int, ...] = ()  #: of the times of single operations; see `bin_end`

    @property
    def cpu_ns(self) -> int:
        """The CPU time of all threads, of this thread, or else the wall time, as far as known."""
        known = (self.process_ns, self.thread_ns, self.wall_ns)
        return next(ns for ns in known if ns is not None)

    def quantile(self, share: float) -> int:
        """The time in ns that this share of the single operations does not exceed: a bin's end.

        >>> PhaseTime(0, 0, 4, 0, 900, histogram=(0, 0, 3, *[0] * 17, 1)).quantile(0.9)
        25
        """
        wanted, seen = max(math.ceil(share * sum(self.histogram)), 1), 0
        for number, count in enumerate(self.histogram):
            seen += count
            if seen >= wanted:
                return bin_end(number)
        raise ValueError("the histogram is empty")


BINS = 496
"""The bins of a histogram: enough for 2**63 ns."""


def bin_end(number: int) -> int:
    """The greatest time in a bin. There are eight bins from each power of two to the next.

    >>> [bin_end(number) for number in (0, 15, 16, 23, 24)]
    [0, 15, 17, 31, 35]
    """
    exponent = max(number // 8 - 1, 0)
    return ((number - 8 * exponent + 1) << exponent) - 1


def parse_times(text: str, rounds: int, phases: int) -> list[PhaseTime]:
    """Parse the output of `time`: a line per round and phase, the drain included.

    Raises ValueError, which says what is wrong.
    """
    times = []
    for line in text.splitlines():
        value = json.loads(line)
        if not isinstance(value, dict):
            raise ValueError("time must print JSON objects")
        for part in fields(PhaseTime):
            if part.name == "counts":
                value.setdefault("counts", {})
                _check(value, "counts", _are_counts, "an object of integers")
                continue
            if part.name == "histogram":
                value["histogram"] = _parse_histogram(value.get("histogram", []))
                continue
            optional = part.name in ("thread_ns", "process_ns", "memory_bytes")
            if optional and value.get(part.name) is None:
                value[part.name] = None
                continue
            _check(value, part.name, lambda entry: type(entry) is int, "an integer")
            if value[part.name] < 0:
                raise ValueError(f"{part.name} is {value[part.name]}; it must not be negative")
        times.append(PhaseTime(**{part.name: value[part.name] for part in fields(PhaseTime)}))
    expected = [(number, phase) for number in range(rounds) for phase in range(phases + 1)]
    if [(line.round, line.phase) for line in times] != expected:
        raise ValueError(
            f"time printed {len(times)} lines; it must print one per round and phase, in order:"
            f" {rounds} rounds of {phases + 1} phases"
        )
    return times
