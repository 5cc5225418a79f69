"""Arguments as the timers take them: moments, integers, arrays of them, and parameters.

Whatever is refused raises an error of one line that names the argument, the value and the rule.
"""

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from timers.errors import ParameterError, TimeRangeError, TimeTypeError
from timers.limits import LIMIT
from timers.rounding import Int64s

_MOST_BITS_SHOWN = 256  # of an integer in an error message


def as_integer(value: Any, name: str) -> int:
    """`value` as a Python int.

    NumPy integers and other types with `__index__` are converted; bool and float are refused.
    Raises TimeTypeError.
    """
    if type(value) is int:
        return value
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TimeTypeError(
            f"{name} must be an integer, not {type(value).__name__} ({shown(value)})"
        ) from None


def as_time(value: Any, name: str) -> int:
    """`value` as a moment in [0, LIMIT]. Raises TimeTypeError, TimeRangeError."""
    moment = as_integer(value, name)
    if not 0 <= moment <= LIMIT:
        raise _out_of_range(name, moment)
    return moment


def as_parameter(value: Any, name: str, lowest: int, highest: int) -> int:
    """`value` as a parameter in [lowest, highest]. Raises TimeTypeError, ParameterError."""
    parameter = as_integer(value, name)
    if not lowest <= parameter <= highest:
        raise ParameterError(f"{name} must lie in [{lowest}, {highest}], not {shown(parameter)}")
    return parameter


def as_integers(values: npt.ArrayLike, name: str) -> Int64s:
    """`values` as a 1-D int64 array, without a copy where it is one.

    Raises TimeTypeError or TimeRangeError; it names the first element that is not an int64.
    """
    array = values if isinstance(values, np.ndarray) else _array_of(values, name)
    if array.ndim != 1:
        raise TimeTypeError(f"{name} must be one-dimensional, not of shape {array.shape}")
    if array.size == 0 and array.dtype.kind in "fO":  # what NumPy makes of an empty list
        return np.empty(0, np.int64)
    if array.dtype.kind == "O":
        for position, value in enumerate(array):
            integer = as_integer(value, f"{name}[{position}]")
            if not -LIMIT - 1 <= integer <= LIMIT:
                raise _out_of_range(f"{name}[{position}] =", integer)
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TimeTypeError(
            f"{name} must hold integers, not {array.dtype} ({name}[0] = {array[:1].tolist()})"
        )
    if array.dtype == np.uint64:
        _refuse_any(array > LIMIT, array, name)
    return np.ascontiguousarray(array, np.int64)


def as_times(values: npt.ArrayLike, name: str) -> Int64s:
    """`values` as a 1-D int64 array of moments in [0, LIMIT].

    Raises TimeTypeError or TimeRangeError; it names the first bad element.
    """
    array = as_integers(values, name)
    if array.size and array.min() < 0:
        _refuse_any(array < 0, array, name)
    return array


def as_pairs(handles: npt.ArrayLike, deadlines: npt.ArrayLike) -> tuple[Int64s, Int64s]:
    """Handles and as many deadlines. Raises TimeTypeError, TimeRangeError."""
    some, as_many = as_integers(handles, "handles"), as_times(deadlines, "deadlines")
    if some.size != as_many.size:
        raise TimeRangeError(f"{some.size} handles do not go with {as_many.size} deadlines")
    return some, as_many


def shown(value: Any) -> str:
    """A value as one short line for an error message."""
    if isinstance(value, int):  # Python refuses to print an int of thousands of digits
        bits = value.bit_length()
        return str(value) if bits <= _MOST_BITS_SHOWN else f"of {bits} bits"
    return f"{' '.join(repr(value).split()):.60}"


def _array_of(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """A sequence as an array of objects, so that an error can name the first bad element."""
    try:
        items = list(values)  # type: ignore[arg-type]  # raises for what is not a sequence
    except TypeError:
        raise TimeTypeError(
            f"{name} must be a 1-D array of integers, not {type(values).__name__}"
        ) from None
    array = np.empty(len(items), object)
    array[:] = items
    return array


def _refuse_any(bad: npt.NDArray[np.bool_], array: npt.NDArray[Any], name: str) -> None:
    if bad.any():
        position = int(np.argmax(bad))
        raise _out_of_range(f"{name}[{position}] =", int(array[position]))


def _out_of_range(name: str, value: int) -> TimeRangeError:
    return TimeRangeError(f"{name} {shown(value)} is outside [0, 2**63 - 1]")
