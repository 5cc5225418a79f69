"""Validation and conversion of arguments: integers, moments, arrays of them, and parameters.

An illegal argument raises an error whose one-line message names argument, value and rule.
"""

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from timers.arrays import Int64s
from timers.errors import CapacityError, ParameterError, TimeRangeError, TimeTypeError
from timers.limits import LIMIT

INT64, BOOL = np.dtype(np.int64), np.dtype(np.bool_)

_MAX_BITS_SHOWN = 256  # longer integers are not printed in error messages


def as_integer(value: Any, name: str) -> int:
    """Return `value` as a Python int.

    NumPy integers and other types with `__index__` are converted; bool and float are refused.
    Raises TimeTypeError.
    """
    if type(value) is int:
        return value
    try:
        if isinstance(value, (bool, np.bool_)):  # NumPy 2.0 still takes its own for an index
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TimeTypeError(
            f"{name} must be an integer, not {type(value).__name__} ({shown(value)})"
        ) from None


def as_time(value: Any, name: str) -> int:
    """Return `value` as a moment in [0, LIMIT]. Raises TimeTypeError, TimeRangeError."""
    if type(value) is int and 0 <= value <= LIMIT:
        return value
    moment = as_integer(value, name)
    if not 0 <= moment <= LIMIT:
        raise _out_of_range(name, moment)
    return moment


def as_parameter(value: Any, name: str, lowest: int, highest: int) -> int:
    """Return `value` as a parameter in [lowest, highest].

    Raises TimeTypeError, ParameterError.
    """
    parameter = as_integer(value, name)
    if not lowest <= parameter <= highest:
        raise ParameterError(f"{name} must lie in [{lowest}, {highest}], not {shown(parameter)}")
    return parameter


def as_integers(values: Any, name: str, *, or_zero: bool = False) -> Int64s:
    """Return `values` as a 1-D int64 array, uncopied if it is one already.

    Raises TimeTypeError or TimeRangeError with the first element that is not an int64. With
    `or_zero`, integers that do not fit become 0 instead.
    """
    is_plain = type(values) is np.ndarray and values.dtype is INT64 and values.ndim == 1
    if is_plain and values.flags.carray:
        return values  # type: ignore[no-any-return]  # an array of int64
    try:
        if type(values) in (list, tuple) and {*map(type, values)} == {int}:
            try:
                return np.array(values, INT64)
            except OverflowError:
                pass  # one of them does not fit into int64
        return _converted(values, name, or_zero)
    except MemoryError:
        raise CapacityError(f"no memory for the {name}; nothing has changed") from None


def as_handles(values: npt.ArrayLike, name: str) -> Int64s:
    """`as_integers`, with 0 (never a handle) for integers that do not fit into int64."""
    return as_integers(values, name, or_zero=True)


def as_times(values: npt.ArrayLike, name: str) -> Int64s:
    """Return `values` as a 1-D int64 array of moments in [0, LIMIT].

    Raises TimeTypeError or TimeRangeError with the first bad element.
    """
    array = as_integers(values, name)
    if array.size and array.min() < 0:
        position = int(np.argmax(array < 0))
        raise _out_of_range(f"{name}[{position}] =", int(array[position]))
    return array


def as_pairs(handles: npt.ArrayLike, deadlines: npt.ArrayLike) -> tuple[Int64s, Int64s]:
    """Return two arrays of equal length. Raises TimeTypeError, TimeRangeError."""
    handles, deadlines = as_handles(handles, "handles"), as_integers(deadlines, "deadlines")
    if handles.size != deadlines.size:
        raise TimeRangeError(
            f"handles and deadlines differ in length: {handles.size} and {deadlines.size}"
        )
    return handles, deadlines


def shown(value: Any) -> str:
    """Return a value as one short line for an error message."""
    if isinstance(value, int):  # Python refuses to print an int of thousands of digits
        bits = value.bit_length()
        return str(value) if bits <= _MAX_BITS_SHOWN else f"of {bits} bits"
    return f"{' '.join(repr(value).split()):.60}"


def _converted(values: Any, name: str, or_zero: bool) -> Int64s:
    """`as_integers` for all but an INT64 array or a list of ints that fit into int64."""
    if isinstance(values, (Mapping, np.ma.MaskedArray, bytes, bytearray)):
        raise _not_an_array(values, name)
    if not isinstance(values, np.ndarray):
        try:
            values = list(values)
        except TypeError:  # it is not iterable
            raise _not_an_array(values, name) from None
    else:
        if values.ndim != 1:
            raise TimeTypeError(f"{name} must be one-dimensional, not of shape {values.shape}")
        if values.size == 0 and values.dtype.kind == "f":  # np.array([])
            return np.empty(0, INT64)
        if values.dtype.kind not in "iuO":
            raise TimeTypeError(
                f"{name} must hold integers, not {values.dtype} ({name}[0] = {values[:1].tolist()})"
            )
        if values.dtype.kind != "O" and not (values.dtype == np.uint64 and (values > LIMIT).any()):
            return np.ascontiguousarray(values, INT64)
        values = values.tolist()
    integers = [as_integer(value, f"{name}[{position}]") for position, value in enumerate(values)]
    for position, integer in enumerate(integers):
        if not -LIMIT - 1 <= integer <= LIMIT:
            if not or_zero:
                raise _out_of_range(f"{name}[{position}] =", integer)
            integers[position] = 0
    return np.array(integers, INT64)


def _not_an_array(values: Any, name: str) -> TimeTypeError:
    return TimeTypeError(f"{name} must be a 1-D array of integers, not {type(values).__name__}")


def _out_of_range(name: str, value: int) -> TimeRangeError:
    return TimeRangeError(f"{name} {shown(value)} is outside [0, 2**63 - 1]")
