"""The oracle: what a tape must fire and when, from the closed form alone, independent of every
timer.

Each arming has a moment `due_at`. An operation on a timer at or after that moment comes too late.
So what becomes of an arming is known from the operations on its id alone, in the order of the tape.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compare.replay.engine import Replay
from compare.tapes.tape import ARM, CANCEL, START, Tape
from timers.errors import TimerError
from timers.kernels.jit import entry
from timers.rounding import AnyRounding
from timers.traits import Traits

NEVER = (
    -1
)  # an operation that arms nothing, or whose timer was cancelled, re-armed, or is still pending


class AgreementError(TimerError, RuntimeError):
    """A timer did not fire what its traits declare."""


@dataclass(frozen=True)
class Expected:
    """What a tape must do with one closed form. `fired_at` (int64) is by operation, NEVER where
    nothing fires.
    """

    scheduled: int
    cancelled: int
    rescheduled: int
    pending: int
    fired_at: npt.NDArray[np.int64]

    @property
    def fired(self) -> int:
        """How many timers fire."""
        return int(np.count_nonzero(self.fired_at != NEVER))


def expect(tape: Tape, id_space: int, rounding: AnyRounding, *, drained: bool = True) -> Expected:
    """What a timer that rounds like this must do with a tape. O(operations)."""
    armings = np.flatnonzero(tape.op != CANCEL)
    due = np.full(tape.time.size, NEVER, np.int64)
    due[armings] = rounding.due_at(tape.deadline[armings], tape.time[armings])
    ends = np.zeros(tape.time.size, np.bool_)
    scheduled, cancelled, rescheduled = fold(
        tape, due, np.full(max(id_space, 1), NEVER, np.int64), ends
    )
    fires = ends
    if not drained and tape.time.size:
        # The last operation is followed by no advance: what it arms overdue stays pending.
        fires = ends & (due <= tape.time[-1])
        fires[-1] = False
    return Expected(
        scheduled=int(scheduled),
        cancelled=int(cancelled),
        rescheduled=int(rescheduled),
        pending=int(np.count_nonzero(ends & ~fires)),
        fired_at=np.where(fires, due, NEVER),
    )


@entry
def fold(tape, due, last, ends):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  # typed by its arguments
    """Mark in `ends` each arming that is neither cancelled nor re-armed in time.

    `last` (int64, by id, NEVER at first) becomes the arming that holds the id. Returns the
    operations that took effect: scheduled, cancelled, rescheduled.
    """
    scheduled = cancelled = rescheduled = 0
    for k in range(tape.time.size):
        op, i = tape.op[k], tape.id[k]
        held = last[i]
        is_pending = held != NEVER and due[held] > tape.time[k]
        if op == CANCEL:
            if is_pending:
                ends[held] = False
                cancelled += 1
            last[i] = NEVER
        elif op == START or (op == ARM and not is_pending):
            last[i] = k
            ends[k] = True
            scheduled += 1
        elif is_pending:
            ends[held] = False
            last[i] = k
            ends[k] = True
            rescheduled += 1
    return scheduled, cancelled, rescheduled


def check_agreement(
    name: str, traits: Traits, tape: Tape, expected: Expected, done: Replay
) -> None:
    """Raise AgreementError, naming the first differing timer, unless a replay did exactly what was
    expected.
    """
    fired_at = np.full(tape.time.size, NEVER, np.int64)
    fired_at[done.fired["operation"]] = done.fired["fired_at"]
    differs = np.flatnonzero(fired_at != expected.fired_at)
    if differs.size:
        k = int(differs[0])
        raise AgreementError(
            f"{name} disagrees with the oracle on the timer armed by operation {k} (id {tape.id[k]}, at {tape.time[k]}, "
            f"deadline {tape.deadline[k]}): {_moment(fired_at[k])}, expected: {_moment(expected.fired_at[k])}"
        )
    _check_rows(name, traits, tape, done)
    counts = [
        (word, getattr(done.outcome, word), getattr(expected, word))
        for word in ("scheduled", "cancelled", "rescheduled", "pending")
    ]
    for word, got, wanted in counts:
        if got != wanted:
            raise AgreementError(
                f"{name} disagrees with the oracle: {got} {word}, expected {wanted}"
            )


def _check_rows(name: str, traits: Traits, tape: Tape, done: Replay) -> None:
    """What the moments alone do not show: no row twice, its own deadline, and the declared
    order.
    """
    rows = done.fired
    if rows.size and np.bincount(rows["operation"]).max() > 1:
        raise AgreementError(f"{name} fired a timer twice: {rows.size} rows of fewer timers")
    wrong = np.flatnonzero(rows["deadline"] != tape.deadline[rows["operation"]])
    if wrong.size:
        raise AgreementError(f"{name} gave row {wrong[0]} another deadline: {rows[wrong[0]]}")
    misplaced = np.flatnonzero(np.diff(rows["fired_at"]) < 0)
    if traits.order == "fifo" and not misplaced.size:
        by_deadline = rows[
            np.lexsort((rows["deadline"], rows["fired_at"]))
        ]  # stable: equal ones as delivered
        equal = (np.diff(by_deadline["fired_at"]) == 0) & (np.diff(by_deadline["deadline"]) == 0)
        misplaced = np.flatnonzero(equal & (np.diff(by_deadline["operation"]) < 0))
        rows = by_deadline
    if misplaced.size:
        first, second = rows[misplaced[0]], rows[misplaced[0] + 1]
        raise AgreementError(
            f"{name} is declared {traits.order}, but delivered {first} before {second}"
        )


def _moment(fired_at: int) -> str:
    return "did not fire" if fired_at == NEVER else f"fired at {fired_at}"
