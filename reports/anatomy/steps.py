"""Steps of a timer through operations: its contents after each moment, and a sentence about it."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compare.base.formats import counted
from compare.traffic.tapes.tape import CANCEL, REARM, START
from timers.errors import TimerError
from timers.snapshot import Queued, Snapshot

Place = Mapping[str, int | str]
Row = tuple[int, int, int, int]  # time, operation, id, deadline: a row of a tape

REMEMBERED = 12  # moments at which something happened
_NAMED = 6  # timers in a sentence; of more, the number


class AnatomyError(TimerError, ValueError):
    """A timer or a state that cannot be drawn."""


@dataclass(frozen=True)
class Step:
    """The events of one moment."""

    after: Snapshot
    moved: Mapping[int, tuple[Place, Place]]
    """Handle -> the former and the present place of a timer that is still in the structure."""
    text: str  # one or more sentences
    visited: tuple[int, ...]  # the last moments at which something happened, this one included


class Walk:
    """Take a timer through the rows of a tape, from one moment to the next.

    Moments are shown as units after `origin`. Raises AnatomyError for a timer without `snapshot`.
    """

    def __init__(self, timer: Any, rows: Iterable[Row], origin: int = 0, name: str = "") -> None:
        self.timer, self.origin = timer, origin
        self._rows = iter(rows)
        self._next: Row | None = next(self._rows, None)
        self._handles: dict[int, int] = {}  # by id
        self._visited: deque[int] = deque(maxlen=REMEMBERED)
        if not isinstance(getattr(timer, "snapshot", lambda: None)(), Snapshot):
            raise AnatomyError(f"{name or type(timer).__name__} has no snapshot() to draw")

    def steps(self, start: int) -> Iterator[Step]:
        """The step to the moment `start`, then one for each moment at which something happens."""
        while (moment := self._next_moment()) is not None and moment < start:
            self._go(moment)
        yield self._step(start)
        while (moment := self._next_moment()) is not None:
            yield self._step(moment)

    def _next_moment(self) -> int | None:
        """The time of the next wake-up or operation; None if neither follows."""
        moments = [self.timer.next_wakeup(), self._next and self._next[0]]
        return min((moment for moment in moments if moment is not None), default=None)

    def _step(self, moment: int) -> Step:
        before, expected = self.timer.snapshot(), self._next_moment()
        fired, operations = self._go(moment)
        after = self.timer.snapshot()
        moved = _moved(before, after)
        sentences = [_clock_text(before.now, moment, self.origin)]
        sentences += _queue_texts(before, after)
        sentences += _move_texts(moved, after, self.origin)
        if fired:
            sentences.append(f"{_named(fired, self.origin)} {_verb(fired, 'fire')}.")
        sentences += _operation_texts(operations, self.origin)
        if expected is None or expected > moment:
            sentences.append("Nothing happens.")
        return Step(after, moved, " ".join(sentences), tuple(self._visited))

    def _go(self, moment: int) -> tuple[list[int], list[tuple[str, int | None]]]:
        """Advance, then run the operations; return fired deadlines and (operation, deadline)."""
        fired, operations = self.timer.advance(moment).deadlines.tolist(), []
        while self._next is not None and self._next[0] <= moment:
            operations.append(self._operate(*self._next[1:]))
            self._next = next(self._rows, None)
        self._visited.append(moment)
        return fired, operations

    def _operate(self, op: int, id_: int, deadline: int) -> tuple[str, int | None]:
        """Run an operation of a tape; return its name and the new deadline."""
        handle = self._handles.get(id_, 0)
        if op == CANCEL:
            return ("cancelled" if self.timer.cancel(handle) else "cancelled too late"), None
        if op != START and self.timer.reschedule(handle, deadline):
            return "re-armed", deadline
        if op == REARM:
            return "re-armed too late", None
        self._handles[id_] = self.timer.schedule(deadline)
        return "scheduled", deadline


# ---- sentences


LONG = 10**8
"""From here on, a number is too long for a drawing."""


def number(moment: int) -> str:
    """Format a moment in up to eight characters, for a drawing; sentences have all digits.

    >>> number(12345678), number(2**63 - 1)
    ('12345678', '9.22e18')
    """
    return str(moment) if moment < LONG else f"{moment:.2e}".replace("e+", "e")


def _verb(timers: Sequence[object], verb: str) -> str:
    return verb if len(timers) > 1 else f"{verb}s"


def _named(deadlines: Sequence[int], origin: int) -> str:
    """Name timers by their deadlines, or give their number.

    >>> _named([9], 0), _named([10, 11, 12], 5), _named([1] * 7, 0)
    ('9', '5, 6 and 7', '7 timers')
    """
    if len(deadlines) > _NAMED:
        return f"{len(deadlines):,} timers"
    *others, last = [str(deadline - origin) for deadline in deadlines]
    return f"{', '.join(others)} and {last}" if others else last


def place_text(place: Place) -> str:
    """Describe a place.

    >>> place_text({"level": 2, "slot": 8}), place_text({"bucket": "due"})
    ('level 2, slot 8', 'the list "due"')
    """
    if "bucket" in place:
        return f'the list "{place["bucket"]}"'
    return ", ".join(f"{name} {value}" for name, value in place.items() if name != "rounds")


def _clock_text(before: int, now: int, origin: int) -> str:
    if before == now:
        return f"The clock is at {now - origin}."
    return f"The clock jumps from {before - origin} to {now - origin}."


def _queue_texts(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """Describe the buckets that have left the queue, and whether they were empty."""
    held = {(ring.level, slot) for ring in before.rings for slot in ring.slots}
    for bucket in sorted(set(before.queue or ()) - set(after.queue or ())):
        empty = "" if (bucket.level, bucket.slot) in held else " It is empty."
        yield f"The bucket of {bucket_text(bucket)} expires.{empty}"


def bucket_text(bucket: Queued) -> str:
    """Describe a queued bucket: "level 2, slot 8"."""
    return place_text({"level": bucket.level, "slot": bucket.slot})


def _moved(before: Snapshot, after: Snapshot) -> dict[int, tuple[Place, Place]]:
    sources = {timer.handle: place for timer, place in before.places()}
    return {
        timer.handle: (sources[timer.handle], place)
        for timer, place in after.places()
        if timer.pending and sources.get(timer.handle, place) != place
    }


def _move_texts(
    moved: Mapping[int, tuple[Place, Place]], after: Snapshot, origin: int
) -> Iterator[str]:
    """Describe the timers that have moved, grouped by their former and present places."""
    deadlines = {timer.handle: timer.deadline for timer, _ in after.places()}
    groups: dict[tuple[str, str], list[int]] = {}
    turned = 0
    for handle, (source, target) in moved.items():
        if "index" in target:
            continue  # entries of a heap change places all the time
        texts = place_text(source), place_text(target)
        if texts[0] == texts[1]:
            turned += 1
        else:
            groups.setdefault(texts, []).append(deadlines[handle])
    for (origin_text, target_text), timers in groups.items():
        verb = _verb(timers, "move")
        yield f"{_named(timers, origin)} {verb} from {origin_text} to {target_text}."
    if turned:
        yield f"{turned:,} {'timers have' if turned > 1 else 'timer has'} one round less to wait."


def _operation_texts(operations: Sequence[tuple[str, int | None]], origin: int) -> Iterator[str]:
    groups: dict[str, list[int | None]] = {}
    for action, deadline in operations:
        groups.setdefault(action, []).append(deadline)
    for action, deadlines in groups.items():
        known = [deadline for deadline in deadlines if deadline is not None]
        subject = _named(known, origin) if known else counted(len(deadlines), "timer")
        yield f"{subject} {'is' if len(deadlines) == 1 else 'are'} {action}."
