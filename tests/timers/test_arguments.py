"""Nonsense is answered with one clear line that names the value, and changes nothing; memory is
what is declared.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timers
from tests.timers.cases import DEFAULTS, KERNELS, Case, Pair
from tests.words import one_line, tells
from timers.errors import (
    CapacityError,
    ClockError,
    ParameterError,
    TimeRangeError,
    TimerError,
    TimeTypeError,
    UnknownTimerError,
)
from timers.kernels.pool import MAX_PLACES
from timers.limits import LIMIT
from timers.protocol import Timer
from timers.traits import Parameter

every_timer = pytest.mark.parametrize("case", DEFAULTS, ids=str)
every_kernel = pytest.mark.parametrize("case", KERNELS, ids=str)

NO_INTEGERS = [
    *(True, np.bool_(False), None, 1.0, float("nan"), float("inf"), np.float64(3), 1j),
    *("12", "two\nlines", b"1", [1], (), {}, object),
    *(np.array([1, 2]), np.zeros((2, 2)), np.array(1.5), np.datetime64(1, "s")),
]
OUT_OF_RANGE = [
    *(-1, LIMIT + 1, 2**64, -(2**63), -(2**63) - 1, 2**200, np.int64(-5), np.uint64(2**63)),
]
NUMPY_INTEGERS = [
    *(np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.intp),
]
NO_ARRAYS = [
    *(5, None, 1.5, True, np.int64(3), np.array(3), object(), {5: 6, 7: 8}),
    np.ma.array([60, 70], mask=[True, False]),
]
WRONG_DTYPES = [
    np.array([1.0, 2.0]),
    np.array([True, False]),
    np.array(["1", "2\n"]),
    np.array([1, 2], "m8[s]"),
    np.array([1, 2], complex),
    np.zeros(2, [("a", "i8")]),
]
WRONG_SHAPES = [np.zeros((2, 2), np.int64), np.zeros((1, 3), np.int64), np.zeros((0, 2), np.int64)]

Call = Callable[[Any, Any, int], Any]
"""A public call, as a function of a timer, the bad value and the handle of a pending timer."""

TAKES_A_MOMENT: list[Call] = [
    lambda timer, value, handle: timer.schedule(value),
    lambda timer, value, handle: timer.reschedule(handle, value),
    lambda timer, value, handle: timer.advance(value),
]
TAKES_AN_INTEGER: list[Call] = [
    *TAKES_A_MOMENT,
    lambda timer, value, handle: timer.schedule_after(value),
    lambda timer, value, handle: timer.cancel(value),
    lambda timer, value, handle: timer.reschedule(value, 60),
]
TAKES_MOMENTS: list[Call] = [
    lambda timer, values, handle: timer.schedule_many(values),
    lambda timer, values, handle: timer.reschedule_many([handle] * len(values), values),
]
TAKES_AN_ARRAY: list[Call] = [
    lambda timer, values, handle: timer.schedule_many(values),
    lambda timer, values, handle: timer.reschedule_many([handle, handle], values),
    lambda timer, values, handle: timer.reschedule_many(values, [60, 70]),
    lambda timer, values, handle: timer.cancel_many(values),
]


def refused(pair: Pair, error: type[TimerError], call: Callable[..., Any], *arguments: Any) -> str:
    """The message of a refusal: one line. The error is the nearest builtin one, too, and afterwards
    everything is as it was.
    """
    timer = pair.timer
    before = (timer.now, len(timer), timer.nbytes, timer.next_expiry(), timer.next_wakeup())
    with pytest.raises(error) as caught:
        call(*arguments)
    assert (timer.now, len(timer), timer.nbytes, timer.next_expiry(), timer.next_wakeup()) == before
    pair.agree()
    builtin = TypeError if error is TimeTypeError else (ValueError, MemoryError)
    assert isinstance(caught.value, builtin)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    assert len(message) < 300
    return message


def at_work(case: Case) -> tuple[Pair, int]:
    """A timer at 50 with two pending timers, full, and the handle of one."""
    pair = Pair(case, start=50, capacity=2)
    pair.schedule(70_000)
    return pair, pair.schedule(1_000)


# ---- one integer


@every_timer
def test_what_is_no_integer_is_refused_by_type(case: Case) -> None:
    for call in TAKES_AN_INTEGER:
        pair, handle = at_work(case)
        for value in NO_INTEGERS:
            message = refused(pair, TimeTypeError, call, pair.timer, value, handle)
            assert type(value).__name__ in message
            assert "integer" in message
        assert len(pair.finish()) == 2


@every_timer
def test_moment_out_of_range_is_refused_with_its_value(case: Case) -> None:
    for call in TAKES_A_MOMENT:
        pair, handle = at_work(case)
        for value in OUT_OF_RANGE:
            message = refused(pair, TimeRangeError, call, pair.timer, value, handle)
            assert str(value) in message
            assert "2**63 - 1" in message
        unprintable = 10**5000  # more digits than Python prints
        refused(pair, TimeRangeError, call, pair.timer, unprintable, handle)
        assert len(pair.finish()) == 2


@every_timer
def test_a_limit_is_an_integer_of_at_least_one(case: Case) -> None:
    pair, _ = at_work(case)
    for value in NO_INTEGERS:
        if value is not None:
            message = refused(pair, TimeTypeError, pair.timer.advance, 100, value)
            assert message.startswith("limit must be an integer")
    for value in (0, -1, LIMIT + 1):
        message = refused(pair, ParameterError, pair.timer.advance, 100, value)
        assert message == f"limit must lie in [1, {LIMIT}], not {value}"
    assert len(pair.advance(LIMIT, np.int8(1))) == 1


@every_timer
def test_advance_backwards_is_refused_with_both_moments(case: Case) -> None:
    pair, _ = at_work(case)
    message = refused(pair, ClockError, lambda: pair.timer.advance(49))
    assert tells(message, "49 50")


@every_timer
def test_numpy_integers_are_integers(case: Case) -> None:
    integer: Any
    for integer in NUMPY_INTEGERS:
        pair = Pair(case)
        handle = pair.timer.schedule(integer(100))
        after = pair.timer.schedule_after(integer(101))
        assert type(handle) is type(after) is int
        pair.model.schedule(100, handle)
        pair.model.schedule_after(101, after)
        assert pair.timer.reschedule(np.int64(handle), integer(102)) is True
        pair.model.reschedule(handle, 102)
        assert pair.timer.cancel(np.uint64(after)) is True
        pair.model.cancel(after)
        rows = pair.advance(integer(103))
        assert type(pair.timer.now) is int
        assert len(rows) + len(pair.finish()) == 1


# ---- arrays


@every_timer
def test_what_is_no_one_dimensional_array_of_integers_is_refused(case: Case) -> None:
    for call in TAKES_AN_ARRAY:
        pair, handle = at_work(case)
        for values in (*NO_ARRAYS, *WRONG_DTYPES, *WRONG_SHAPES):
            refused(pair, TimeTypeError, call, pair.timer, values, handle)
        assert len(pair.finish()) == 2


@every_timer
def test_element_that_is_no_integer_is_named_by_its_position(case: Case) -> None:
    for call in TAKES_AN_ARRAY:
        pair, handle = at_work(case)
        for value in NO_INTEGERS:
            message = refused(pair, TimeTypeError, call, pair.timer, [7, value], handle)
            assert "[1]" in message
            assert type(value).__name__ in message
        assert len(pair.finish()) == 2


@every_timer
def test_element_out_of_range_is_named_by_its_position_and_value(case: Case) -> None:
    for call in TAKES_MOMENTS:
        pair, handle = at_work(case)
        for value in OUT_OF_RANGE:
            message = refused(pair, TimeRangeError, call, pair.timer, [7, 8, value, value], handle)
            assert "[2]" in message
            assert str(value) in message
        for values in (
            np.array([1, -3, -7], np.int64),
            np.array([1, 2**63 + 7], np.uint64),
            np.array([1, -7], np.int8),
        ):
            message = refused(pair, TimeRangeError, call, pair.timer, values, handle)
            assert "[1]" in message
            assert str(values[1]) in message
        assert len(pair.finish()) == 2


class Indexed:
    """An integer by `__index__`, which may be asked only once."""

    def __init__(self, value: int) -> None:
        self.values = [value]

    def __index__(self) -> int:
        return self.values.pop()


@every_timer
def test_elements_are_converted_once(case: Case) -> None:
    timer = case()
    handles = timer.schedule_many([Indexed(60), Indexed(70)]).tolist()
    assert timer.reschedule_many(
        np.array([Indexed(handle) for handle in handles], object), [Indexed(80), Indexed(90)]
    ).all()
    assert timer.cancel_many([Indexed(handle) for handle in handles]).all()
    with pytest.raises(TimeRangeError, match=r"\[0\] = 9223372036854775808 is outside"):
        timer.schedule_many([Indexed(2**63)])


@every_timer
def test_handles_beyond_int64_are_nobodys(case: Case) -> None:
    pair, handle = at_work(case)
    for beyond in (2**63, 2**64, 10**5000, -(2**63) - 1, Indexed(2**63)):
        assert pair.timer.cancel_many([beyond]).tolist() == [False]  # type: ignore[list-item]
    unsigned = np.array([2**63 + handle, 2**64 - 1], np.uint64)
    assert pair.timer.cancel_many(unsigned).tolist() == [False, False]
    assert pair.timer.reschedule_many([2**63, handle], [60, 70]).tolist() == [False, True]
    pair.model.reschedule(handle, 70)
    assert len(pair.finish()) == 2


@pytest.mark.parametrize("handle", [2**32 - 1, -7, np.array([2**33, 5, -7])])
def test_what_cannot_be_a_handle_has_no_place(handle: Any) -> None:
    with pytest.raises(TimeRangeError, match=f"^{np.min(handle)} is not a handle: .* 2\\*\\*32$"):
        timers.place_of(handle)


@pytest.mark.parametrize("handle", [None, 2.0**33, True, "7", [2**33], np.array([2.0**33])])
def test_what_is_not_an_integer_has_no_place(handle: Any) -> None:
    with pytest.raises(TimeTypeError, match="^handle must "):
        timers.place_of(handle)


@every_timer
def test_parameters_are_read_only(case: Case) -> None:
    parameters: Any = case().parameters
    with pytest.raises(TypeError):
        parameters["tick"] = 5
    assert parameters == dict(case.parameters)


@every_timer
def test_as_many_handles_as_deadlines_are_wanted(case: Case) -> None:
    pair, handle = at_work(case)
    for handles, deadlines in (
        ([handle], [60, 61]),
        ([handle, handle], [60]),
        ([], [60]),
        ([handle], []),
    ):
        message = refused(pair, TimeRangeError, pair.timer.reschedule_many, handles, deadlines)
        assert str(len(handles)) in message
        assert str(len(deadlines)) in message


@every_timer
def test_empty_batches_do_nothing(case: Case) -> None:
    empty: Any
    for empty in (
        *([], (), range(0)),
        *(np.array([]), np.empty(0, np.int64), np.empty(0, np.uint8)),
    ):
        pair, _ = at_work(case)
        assert pair.timer.schedule_many(empty).dtype == np.int64
        assert pair.timer.cancel_many(empty).dtype == np.bool_
        assert pair.timer.reschedule_many(empty, empty).dtype == np.bool_
        assert pair.timer.cancel_many(empty).shape == (0,)
        pair.agree()
        assert len(pair.finish()) == 2


@every_timer
def test_batches_take_every_integer_dtype_and_layout(case: Case) -> None:
    dtype: Any
    for dtype in (*NUMPY_INTEGERS, ">i8"):
        pair = Pair(case)
        deadlines = np.array([100, 1, 120, 1, 60, 1], dtype)[::2]
        deadlines.flags.writeable = False
        for values in (
            deadlines,
            deadlines.tolist(),
            tuple(deadlines.tolist()),
            range(5, 8),
            list(deadlines),
        ):
            handles = pair.timer.schedule_many(values)
            assert (handles.dtype, handles.shape) == (np.int64, (3,))
            pair.model.schedule_many([int(value) for value in values], handles.tolist())
        assert deadlines.tolist() == [100, 120, 60]
        handles.flags.writeable = False
        assert pair.timer.reschedule_many(handles, deadlines).tolist() == [True] * 3
        pair.model.reschedule_many(handles.tolist(), deadlines.tolist())
        strided = np.repeat(handles, 2)[::-2]
        assert pair.timer.cancel_many(strided).tolist() == [True] * 3
        pair.model.cancel_many(handles.tolist())
        assert len(pair.finish()) == 12


class SingleCalls(timers.HeapqDelayQueue):
    """A timer with the batches that it inherits from the protocol."""

    schedule_many, cancel_many = Timer.schedule_many, Timer.cancel_many


def test_inherited_batches_make_single_calls_and_schedule_all_or_nothing() -> None:
    timer = SingleCalls()
    handles = timer.schedule_many([20, 10])
    assert (handles.dtype, timer.next_wakeup()) == (np.int64, 10)
    with pytest.raises(TimeRangeError, match=r"deadlines\[1\] = -1"):
        timer.schedule_many([5, -1])
    cancelled = timer.cancel_many([int(handles[0]), 2**64, int(handles[0])])
    assert (cancelled.dtype, cancelled.tolist()) == (np.bool_, [True, False, False])
    assert timer.advance(30).handles.tolist() == [handles[1]]


def test_a_timer_that_lacks_a_method_cannot_be_made() -> None:
    class NoAdvance(Timer):
        now, traits, parameters, nbytes = 0, timers.DelayQueue.traits, {}, 0
        schedule = cancel = reschedule = next_expiry = __len__ = len

    with pytest.raises(TypeError, match="NoAdvance .*abstract method '?advance'?$"):
        NoAdvance()


@every_timer
def test_expired_rows_are_the_callers_own(case: Case) -> None:
    timer = case()
    timer.schedule_many([0, 0])
    first = timer.advance(0)
    kept = [column.copy() for column in first]
    timer.schedule_many([5, 5])
    second = timer.advance(1000)
    assert all((column == copy).all() for column, copy in zip(first, kept, strict=True))
    for column in (*first, *second):
        assert column.flags.c_contiguous
        column[:] = -1  # writable, and nobody else's
    timer.check()
    empty = timer.advance(2000)
    assert [(column.dtype, column.shape) for column in empty] == [(np.int64, (0,))] * 3


# ---- constructors and names


@every_timer
def test_constructor_refuses_parameters_out_of_range(case: Case) -> None:
    cls = timers.timer_class(case.name)
    capacity = Parameter(1, 1, MAX_PLACES)
    for name, parameter in {"capacity": capacity, **case.traits.parameters}.items():
        lowest, highest = parameter.lowest, parameter.highest
        for value in (lowest - 1, 0, -1, -LIMIT, highest + 1, LIMIT + 1, 2**200):
            with pytest.raises(ParameterError) as caught:
                cls(**{name: value})
            assert tells(str(caught.value), f"{name} [{lowest}, {highest}] {value}")
        for value in NO_INTEGERS:
            with one_line(TimeTypeError, name):
                cls(**{name: value})


@every_timer
def test_constructor_refuses_a_start_out_of_range(case: Case) -> None:
    for value in OUT_OF_RANGE:
        with pytest.raises(TimeRangeError, match="start"):
            case(start=value)
    for value in NO_INTEGERS:
        with pytest.raises(TimeTypeError, match="start"):
            case(start=value)
    assert case(start=LIMIT).now == LIMIT
    assert case(start=np.int32(7)).now == 7


@pytest.mark.parametrize(
    "name",
    ["hierarchical", "Hashed-Wheel", "", "wheel\nof time", "no.such:Class", "timers:names", ":"],
)
def test_unknown_timer_is_refused_by_name(name: str) -> None:
    with one_line(UnknownTimerError, re.escape(repr(name))):
        timers.timer_class(name)


def test_timer_of_ones_own_is_found_by_module_and_class() -> None:
    cls = timers.timer_class("timers.schemes.simple_wheel:SimpleWheel")
    assert cls is timers.SimpleWheel


# ---- memory


@every_kernel
def test_more_than_a_handle_can_name_is_refused_and_nothing_is_lost(case: Case) -> None:
    pair, _ = at_work(case)
    kernel_timer: Any = pair.timer
    for extra in (MAX_PLACES, 2**31, 2**62):
        message = refused(pair, CapacityError, kernel_timer.reserve, extra)
        assert str(extra) in message
    assert len(pair.finish()) == 2


@every_kernel
def test_reserve_makes_room_without_a_change_that_shows(case: Case) -> None:
    pair, _ = at_work(case)
    kernel_timer: Any = pair.timer
    kernel_timer.reserve(0)
    kernel_timer.reserve(1000)
    held = pair.timer.nbytes
    pair.agree()
    for _ in range(1000):
        pair.schedule(500)
    assert pair.timer.nbytes == held
    for value in NO_INTEGERS:
        refused(pair, TimeTypeError, kernel_timer.reserve, value)


@every_kernel
def test_locate_knows_pending_timers_only(case: Case) -> None:
    pair, handle = at_work(case)
    kernel_timer: Any = pair.timer
    assert kernel_timer.locate(handle)
    assert kernel_timer.locate(pair.schedule(0))
    for foreign in (0, -1, 1, handle + 2**32, LIMIT, 2**63, 2**64, -(2**63)):
        assert kernel_timer.locate(foreign) == {}
    pair.cancel(handle)
    assert kernel_timer.locate(handle) == {}
    for value in NO_INTEGERS:
        refused(pair, TimeTypeError, kernel_timer.locate, value)
