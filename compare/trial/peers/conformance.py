"""The model-based check of a timer in Python: random calls, compared step by step with a model.

The machine's `factory(start=..., capacity=...)` makes a timer, whose own `traits` and `parameters`
say what it must do. `pytest --timer module:factory` runs it (docs/peers.md).
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from compare.trial.peers.model import Model, Row
from timers.errors import UnknownTimerError
from timers.kernels.handles import LAST_GENERATION, LOWEST_HANDLE, PLACE_BITS
from timers.limits import LIMIT
from timers.protocol import Expired, Timer
from timers.traits import Parameters, Traits

Factory = Callable[..., Timer]

# Distances at which some scheme changes its mind: slots, rotations, levels, the reach of the
# wheels, the range.
EDGES = (
    *(1, 2, 7, 8, 9, 10, 20, 21, 64, 100, 200, 256, 400, 512, 4000, 8000, 51200),
    *(65536, 2**24, 2**32, 2**40, LIMIT),
)
MOST_DELAY = (
    600  # of the small deltas: some rotations of the smaller wheels, and past the larger ones
)

STARTS = (
    *(0, 1, 5, 255, 256, 2**16 - 1, 2**31, 2**32 - 3, 2**40 - 1, 2**40, 2**62),
    *(LIMIT - 300, LIMIT - 5, LIMIT),
)
MOST_CAPACITY = 4  # at first: small, so that it grows; when aged, so many places are soon retired
MOST_TO_DRAIN = 5  # pending timers: each may need a wake-up on every level
MOST_LEVELS = 64  # of any scheme: two slots on each level, 63 bits
MOST_WAKEUPS = 400  # followed in one drain: a far deadline on a wheel of one slot would want 2**62

deltas = st.one_of(
    st.integers(0, MOST_DELAY),
    st.builds(int.__add__, st.sampled_from(EDGES), st.integers(-1, 1)),
    st.integers(0, 2**41),
    st.integers(0, LIMIT),
)
# How a moment is found: so far after the clock (before it, when negative), so many percent of the
# lowest wheel's rotation after it, or so far after the next multiple of some width.
When = tuple[str | int, int]
whens: st.SearchStrategy[When] = st.one_of(
    st.tuples(st.just("after"), deltas),
    st.tuples(st.just("after"), st.integers(-MOST_DELAY, MOST_DELAY)),
    st.tuples(st.just("percent"), st.integers(0, 250)),
    st.tuples(st.sampled_from(EDGES), st.integers(-1, MOST_DELAY)),
)
picks = st.integers(0, 2**16)  # which of the known handles, modulo how many there are
batches = st.lists(whens, max_size=12)
limits = st.none() | st.integers(1, 8)  # of rows; fewer than timers with equal deadlines
foreign = st.one_of(
    st.integers(-3, 3),
    st.sampled_from(
        [2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**32 + 7, 2**32 + 2**31, 2**33 - 1, 2**62, LIMIT]
    ),
    st.sampled_from([-(2**31), -(2**32), -LIMIT - 1]),
)
beyond_int64 = st.sampled_from([2**63, 2**64 + 1, -(2**63) - 1, 2**80])
other_uses = st.sampled_from(
    [-(2**30), -2, -1, 1, 2, 2**30, LAST_GENERATION]
)  # generations away from a real handle


def rotation_of(parameters: Parameters) -> int:
    """Return the units in which the lowest wheel goes round; 256 if there is no wheel size."""
    return parameters.get("tick", 1) * parameters.get("wheel_size", 256)


def rows_of(expired: Expired) -> list[Row]:
    """Return the rows of an Expired as ints, in their order."""
    return [Row(*row) for row in zip(*(column.tolist() for column in expired), strict=True)]


def assert_fired(expired: Expired, expected: list[Row], traits: Traits) -> None:
    """Assert that `expired` is what the model expects, ordered by `fired_at`, and within a unit as
    the traits declare.
    """
    rows = rows_of(expired)
    moments = [row.fired_at for row in rows]
    assert moments == sorted(moments), f"rows are not ordered by fired_at: {rows}"
    if traits.order == "fifo" and sorted(rows) == sorted(expected):
        assert rows == expected, f"declared fifo, but {rows} fired, not {expected}"
    assert sorted(rows) == sorted(expected), f"{rows} fired, not {expected}"


def advance_model(
    model: Model, now: int, limit: int | None, expired: Expired, traits: Traits
) -> None:
    """Advance the model, and assert that `expired` is what it expects."""
    chosen = expired.handles.tolist() if traits.order == "unspecified" else ()
    assert_fired(expired, model.advance(now, limit, chosen), traits)


def agree(timer: Any, model: Model) -> None:
    """Assert that what can be asked of a timer agrees with the model."""
    timer.check()
    assert len(timer) == len(model), f"len() is {len(timer)}; {len(model)} timers are pending"
    assert timer.now == model.now, f"now is {timer.now}, not {model.now}"
    earliest, bound, wakeup = model.next_expiry(), timer.next_expiry(), timer.next_wakeup()
    if earliest is None:
        assert bound is None, f"next_expiry() is {bound}, but nothing is pending"
    else:
        assert bound is not None, "next_expiry() is None, but timers are pending"
        assert bound <= earliest, f"next_expiry() is {bound}, but a timer fires at {earliest}"
        assert model.now <= bound, f"next_expiry() is {bound}, before now {model.now}"
        if timer.traits.exact_next_expiry:
            assert bound >= earliest, f"next_expiry() is {bound}; declared exact: {earliest}"
        assert wakeup is not None, "next_wakeup() is None, but timers are pending"
        assert wakeup <= earliest, f"next_wakeup() is {wakeup}, but a timer fires at {earliest}"
    if wakeup is not None:
        assert model.now <= wakeup, f"next_wakeup() is {wakeup}, before now {model.now}"


class TimerMachine(RuleBasedStateMachine):
    """Every operation on a timer and on the model beside it; after each, all that can be asked must
    agree.
    """

    factory: ClassVar[Factory]

    @initialize(start=st.sampled_from(STARTS), capacity=st.integers(1, MOST_CAPACITY))
    def make(self, start: int, capacity: int) -> None:
        """Make the timer and the model."""
        self.timer: Any = type(self).factory(start=start, capacity=capacity)
        self.model = Model(self.timer.traits, self.timer.parameters, start)
        self.known: list[int] = []  # every handle ever returned, in order

    # ---- arming

    @rule(when=whens)
    def schedule(self, when: When) -> None:
        deadline = self.moment(when)
        handle = self.timer.schedule(deadline)
        self.remember([handle])
        self.model.schedule(deadline, handle)

    @rule(
        delay=st.one_of(
            deltas, st.integers(-3, 3), st.sampled_from([-LIMIT, LIMIT + 1, 2**70, -(2**70)])
        )
    )
    def schedule_after(self, delay: int) -> None:
        handle = self.timer.schedule_after(delay)
        self.remember([handle])
        self.model.schedule_after(delay, handle)

    @rule(batch=batches)
    def schedule_many(self, batch: list[When]) -> None:
        deadlines = [self.moment(when) for when in batch]
        handles = self.timer.schedule_many(np.array(deadlines, np.int64)).tolist()
        self.remember(handles)
        self.model.schedule_many(deadlines, handles)

    @rule(when=whens, count=st.integers(2, 20))
    def schedule_equal_deadlines(self, when: When, count: int) -> None:
        self.schedule_many([when] * count)

    @rule(when=whens, elapsed=st.integers(0, MOST_DELAY), later=st.integers(0, 20))
    def schedule_behind_another(self, when: When, elapsed: int, later: int) -> None:
        """Just after a timer that was armed earlier, hence perhaps filed in a coarser place."""
        deadline = self.moment(when)
        self.schedule(("after", deadline - self.model.now))
        self.advance(min(self.model.now + elapsed, deadline - 1))
        self.schedule(("after", deadline + later - self.model.now))

    @rule(pick=picks, when=whens)
    def reschedule_pending(self, pick: int, when: When) -> None:
        if self.model.pending:
            self.rearm(self.pending(pick), self.moment(when))

    @rule(pick=picks, offset=st.integers(-1, 1))
    def reschedule_for_the_present(self, pick: int, offset: int) -> None:
        if self.model.pending:
            self.rearm(self.pending(pick), self.model.deadline_after(offset))

    @rule(chosen=st.lists(st.tuples(picks, whens), max_size=12))
    def reschedule_many(self, chosen: list[tuple[int, When]]) -> None:
        handles = [
            self.any_handle(pick) for pick, _ in chosen
        ]  # dead ones and duplicates among them
        deadlines = [self.moment(when) for _, when in chosen]
        rescheduled = self.timer.reschedule_many(handles, deadlines)
        expected = self.model.reschedule_many(handles, deadlines)
        assert rescheduled.dtype == np.bool_, f"reschedule_many gives {rescheduled.dtype}, not bool"
        assert rescheduled.tolist() == expected, (
            f"reschedule_many gives {rescheduled}, not {expected}"
        )

    # ---- cancelling, and handles that are not pending

    @rule(pick=picks)
    def cancel_pending(self, pick: int) -> None:
        if self.model.pending:
            handle = self.pending(pick)
            self.kill(handle)
            self.use(handle, self.model.now)

    @rule()
    def cancel_all(self) -> None:
        """What comes next is then not hidden by what came before."""
        self.kill_many(list(self.model.pending))

    @rule(chosen=st.lists(st.one_of(picks, foreign.map(str)), max_size=12))
    def cancel_many(self, chosen: list[int | str]) -> None:
        handles = [
            int(choice) if isinstance(choice, str) else self.any_handle(choice) for choice in chosen
        ]
        self.kill_many(handles)

    @rule(pick=picks, when=whens)
    def use_any_known_handle(self, pick: int, when: When) -> None:
        self.use(self.any_handle(pick), self.moment(when))

    @rule(handle=st.one_of(foreign, beyond_int64))
    def use_foreign_handle(self, handle: int) -> None:
        self.use(handle, self.model.now)

    @rule(pick=picks, uses=other_uses)
    def use_other_generation(self, pick: int, uses: int) -> None:
        self.use(self.any_handle(pick) + (uses << PLACE_BITS), self.model.now)

    # ---- the clock

    @rule(delta=st.sampled_from([0, 0, 1, 1, 2, 3, 9, 19, 255, 256]))
    def advance_a_little(self, delta: int) -> None:
        self.advance(self.model.now + delta)

    @rule(when=whens, limit=limits)
    def advance_to(self, when: When, limit: int | None) -> None:
        self.advance(self.moment(when), limit)

    @rule(
        pick=picks,
        moment=st.sampled_from(["deadline", "due_at"]),
        offset=st.integers(-1, 1),
        limit=limits,
    )
    def advance_around_a_pending_timer(
        self, pick: int, moment: str, offset: int, limit: int | None
    ) -> None:
        if self.model.pending:
            self.advance(getattr(self.model.pending[self.pending(pick)], moment) + offset, limit)

    @rule(levels=st.integers(1, 4), offset=st.integers(-1, 1))
    def advance_to_a_rotation(self, levels: int, offset: int) -> None:
        """To around the moment at which the wheel of some level is back at its first slot."""
        span = self.rotation * self.timer.parameters.get("wheel_size", 256) ** (levels - 1)
        self.advance((self.model.now // span + 1) * span + offset)

    @rule()
    def advance_to_next_expiry(self) -> None:
        """Something fires there, or the bound rises."""
        bound = self.timer.next_expiry()
        if bound is not None:
            fired = self.advance(bound)
            later = self.timer.next_expiry()
            assert fired or later is None or later > bound, (
                f"nothing fired at next_expiry() {bound}, and then it is {later}"
            )

    @rule(steps=st.integers(1, 40))
    def follow_wakeups(self, steps: int) -> None:
        """Nothing fires late from wake-up to wake-up, and every wake-up gets somewhere."""
        while steps and self.wake_up():
            steps -= 1

    @precondition(lambda self: len(self.model) <= MOST_TO_DRAIN)
    @rule()
    def drain_by_wakeups(self) -> None:
        """From wake-up to wake-up every timer is reached, in as many steps as the widest scheme
        needs.
        """
        spans = [
            (timer.due_at - self.model.now) // self.rotation
            for timer in self.model.pending.values()
        ]
        # Each arming may cost a wake-up on each level, and each timer that waits in rounds one for
        # each of them.
        enough = MOST_LEVELS * (len(self.known) + 1) + sum(spans) + len(spans)
        steps = 0
        while steps < MOST_WAKEUPS and self.wake_up():
            steps += 1
        assert steps <= enough, f"{steps} wake-ups until all had fired; {enough} are enough"

    # ---- what must hold after every step

    @invariant()
    def agree(self) -> None:
        agree(self.timer, self.model)

    # ---- helpers

    def moment(self, when: When) -> int:
        """A moment in range."""
        how, delta = when
        if how == "after":
            return self.model.deadline_after(delta)
        if how == "percent":
            return self.model.deadline_after(self.rotation * delta // 100)
        assert isinstance(how, int)
        return min((self.model.now // how + 1) * how + delta, LIMIT)

    @property
    def rotation(self) -> int:
        return rotation_of(self.timer.parameters)

    def pending(self, pick: int) -> int:
        handles = list(self.model.pending)
        return handles[pick % len(handles)]

    def any_handle(self, pick: int) -> int:
        """A handle that is or was of this timer; before there is one, the first that there will
        be.
        """
        return self.known[pick % len(self.known)] if self.known else LOWEST_HANDLE

    def use(self, handle: int, deadline: int) -> None:
        """Re-arm and cancel by a handle that may not be pending."""
        self.rearm(handle, deadline)
        self.kill(handle)

    def rearm(self, handle: int, deadline: int) -> None:
        answer = self.timer.reschedule(handle, deadline)
        expected = self.model.reschedule(handle, deadline)
        assert answer is expected, f"reschedule({handle}) is {answer!r}, not {expected}"

    def kill(self, handle: int) -> None:
        answer, expected = self.timer.cancel(handle), self.model.cancel(handle)
        assert answer is expected, f"cancel({handle}) is {answer!r}, not {expected}"

    def kill_many(self, handles: list[int]) -> None:
        answers, expected = self.timer.cancel_many(handles), self.model.cancel_many(handles)
        assert answers.dtype == np.bool_, f"cancel_many gives {answers.dtype}, not bool"
        assert answers.tolist() == expected, f"cancel_many gives {answers}, not {expected}"

    def remember(self, handles: list[int]) -> None:
        """Keep new handles: positive, and never used before."""
        for handle in handles:
            assert type(handle) is int, f"handle {handle!r} is not an int"
            assert 0 < handle <= LIMIT, f"handle {handle} is outside [1, 2**63 - 1]"
            assert handle not in self.known, f"handle {handle} has been used before"
            self.known.append(handle)

    def wake_up(self) -> bool:
        """Advance to the next wake-up; False if there is none."""
        agree(self.timer, self.model)  # before the next one: an invariant waits for the whole rule
        wakeup = self.timer.next_wakeup()
        if wakeup is None:
            return False
        fired = self.advance(wakeup)
        later = self.timer.next_wakeup()
        assert fired or later is None or later > wakeup, (
            f"woke at {wakeup} for nothing, and wants {later} next"
        )
        return True

    def advance(self, now: int, limit: int | None = None) -> int:
        """Advance both (never backwards, never past the range); returns how many fired."""
        now = min(max(now, self.model.now), LIMIT)
        expired = self.timer.advance(now) if limit is None else self.timer.advance(now, limit)
        kinds = {(str(column.dtype), column.ndim) for column in expired}
        assert kinds == {("int64", 1)}, f"advance gives columns of {kinds}; they must be int64, 1-D"
        advance_model(self.model, now, limit, expired, self.timer.traits)
        return len(expired.handles)


def factory_named(target: str, directory: Path) -> Factory:
    """Import `module:factory`, also from a directory. Raises UnknownTimerError."""
    module, colon, name = target.partition(":")
    if not (module and colon and name):
        raise UnknownTimerError(f"{target!r} is not module:factory, such as my_timers:Wheel")
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    try:
        factory: Factory = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UnknownTimerError(f"cannot import {target!r}: {error}") from None
    return factory


def check_factory(factory: Callable[..., Timer], **limits: Any) -> None:
    """Check the timers that `factory(start=...)` makes. `limits` are Hypothesis's settings.

    Raises what the first failing step raises; Hypothesis adds the steps that lead to it.
    """

    def make(start: int, capacity: int) -> Timer:
        return factory(start=start)

    machine = type("Machine", (TimerMachine,), {"factory": staticmethod(make)})
    run_state_machine_as_test(machine, settings=settings(deadline=None, **limits))
