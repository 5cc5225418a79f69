"""The values of JSON lines, found in compiled code as places in the data.

No object is made of a line, and no digit of a number is lost. Only plain lines are read. A plain
line is one object. Its wanted values are not objects, arrays or strings with escapes, and their
keys are not repeated. All other lines, right or wrong, are left to Python.

Libraries that read columns were tried. `pyarrow.json` 26 ends the process at a line `null`, and
takes two objects in a line for two rows. Others round numbers, or lose the text that messages
quote. Parsers that make objects take five to fifty times as long.
"""

# ruff: noqa: ANN001, ANN202  # compiled functions are typed by their arguments
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from compare.traffic.logs.blocks import count_byte
from timers.arrays import Bools, Int32s
from timers.kernels.jit import inlined, long_entry

_DEEP = 32
"""The most objects and arrays around a value of a plain line."""
_NO = -1
"""Not plain; no name."""

_LF, _CR, _SPACE, _TAB = b"\n\r \t"
_QUOTE, _BACKSLASH, _COLON, _COMMA, _OPEN, _CLOSE, _BEGIN, _END = b'"\\:,{}[]'
_ZERO, _NINE, _MINUS, _PLUS, _POINT = b"09-+."
_E, _N, _U, _LOWER = b"enu\x20"
_TRUE, _FALSE, _NULL, _ESCAPED, _HEXADECIMAL = (
    np.frombuffer(text, np.uint8)
    for text in (b"true", b"false", b"null", b'"\\/bfnrt', b"0123456789abcdefABCDEF")
)


class Lines(NamedTuple):
    """The lines of some data that are not blank."""

    bounds: Int32s  # shape (lines, 2): the first byte of each line, and its end
    plain: Bools  # whether its values were found
    values: list[pa.Array]  # by name: bytes, or null; without meaning for other lines


def find_values(data: bytes, names: Sequence[bytes]) -> Lines:
    """Find the values of names in the lines. Keys that lead to one are joined: `client.ip`."""
    most = 1 + count_byte(data, b"\n") + (count_byte(data, b"\r") if b"\r" in data else 0)
    bounds, plain = np.empty((most, 2), np.int32), np.empty(most, np.bool_)
    # For each name, the ends of texts of which every second one is a value.
    ends, missing = (
        np.empty((len(names), size), dtype)
        for size, dtype in ((2 * most + 1, np.int32), (most, bool))
    )
    letters = np.frombuffer(b"".join(names) + b"\0", np.uint8)
    letters_of = np.cumsum([0, *map(len, names)])
    matched = np.empty((_DEEP + 2, len(names)), np.int64)
    hit = np.empty((_DEEP + 1, len(names)), np.bool_)
    lines = _find(
        np.frombuffer(data, np.uint8),
        *(letters, letters_of, matched, hit),
        *(bounds, plain, ends, missing),
    )
    values = []
    for name in range(len(names)):
        buffers = [None, pa.py_buffer(ends[name]), pa.py_buffer(data)]
        texts = pa.Array.from_buffers(pa.binary(), 2 * lines, buffers)
        every_second = pa.array(np.arange(0, 2 * lines, 2), mask=missing[name, :lines])
        values.append(texts.take(every_second))
    return Lines(bounds[:lines], plain[:lines], values)


@long_entry
def _find(data, letters, letters_of, matched, hit, bounds, plain, ends, missing):
    """Fill in the lines and their values; return the number of lines."""
    names, size, line, begin = len(letters_of) - 1, data.size, 0, 0
    whole = size  # the end of the last line that has a line end, which ends all loops over it
    while whole and data[whole - 1] != _LF and data[whole - 1] != _CR:
        whole -= 1
    while begin < size:
        at = begin
        while at < size and data[at] == _SPACE:
            at += 1
        if at < size and data[at] != _LF and data[at] != _CR:
            for name in range(names):
                ends[name, 2 * line] = ends[name, 2 * line + 1] = begin
                missing[name, line] = True
            behind = _NO
            if begin < whole:
                behind = _object(data, at, letters, letters_of, matched, hit, line, ends, missing)
            if behind != _NO:
                at = _behind_space(data, behind)
            plain[line] = behind != _NO and (data[at] == _LF or data[at] == _CR)
            while at < size and data[at] != _LF and data[at] != _CR:
                at += 1
            bounds[line, 0], bounds[line, 1] = begin, at
            line += 1
        begin = at + 1
    for name in range(names):
        ends[name, 2 * line] = size
    return line


@inlined
def _object(data, at, letters, letters_of, matched, hit, line, ends, missing):
    """Fill in the values of an object; return the place behind it, or _NO.

    `matched` has, by depth and name, how much of the name the keys around an object are, or _NO;
    and `hit` whether the object had a key that goes on with the name.
    """
    names = len(letters_of) - 1
    at = _behind_space(data, at)
    if data[at] != _OPEN:
        return _NO
    for name in range(names):
        matched[0, name], hit[0, name] = 0, False
    depth, objects = 1, 1  # bit d tells whether that at depth d is an object, not an array
    at = _behind_space(data, at + 1)
    if data[at] == _CLOSE:
        return at + 1
    while True:
        wanted = _NO
        if objects >> (depth - 1) & 1:
            if data[at] != _QUOTE:
                return _NO
            key = at + 1
            at = _behind_string(data, at, False)
            if at == _NO:
                return _NO
            length = at - 1 - key
            for name in range(names):
                matched[depth, name] = _NO
                known = matched[depth - 1, name]
                rest = letters_of[name + 1] - letters_of[name] - known - length
                if known == _NO or rest < 0:
                    continue
                first = letters_of[name] + known
                if rest and letters[first + length] != _POINT:
                    continue
                place = 0
                while place < length and letters[first + place] == data[key + place]:
                    place += 1
                if place < length:
                    continue
                if hit[depth - 1, name]:
                    return _NO
                hit[depth - 1, name] = True
                if rest:
                    matched[depth, name] = known + length + 1
                else:
                    wanted = name
            at = _behind_space(data, at)
            if data[at] != _COLON:
                return _NO
            at = _behind_space(data, at + 1)
        first, character = at, data[at]
        if character in (_OPEN, _BEGIN):
            if wanted != _NO or depth > _DEEP:
                return _NO
            for name in range(names):
                hit[depth, name] = False
                if character == _BEGIN:
                    matched[depth + 1, name] = _NO
            objects = objects & ~(1 << depth) | (character == _OPEN) << depth
            depth += 1
            at = _behind_space(data, at + 1)
            if data[at] != character + 2:  # ASCII has the closing character there
                continue
        elif character == _QUOTE:
            at = _behind_string(data, at, wanted == _NO)
            if at == _NO:
                return _NO
            if wanted != _NO:
                ends[wanted, 2 * line], ends[wanted, 2 * line + 1] = first + 1, at - 1
                missing[wanted, line] = False
        else:
            at = _behind_number(data, at) if character <= _NINE else _behind_word(data, at)
            if at == _NO:
                return _NO
            if wanted != _NO and character != _N:
                ends[wanted, 2 * line], ends[wanted, 2 * line + 1] = first, at
                missing[wanted, line] = False
        at = _behind_space(data, at)
        while data[at] != _COMMA:
            if data[at] != (_CLOSE if objects >> (depth - 1) & 1 else _END):
                return _NO
            depth -= 1
            if not depth:
                return at + 1
            at = _behind_space(data, at + 1)
        at = _behind_space(data, at + 1)


@inlined
def _behind_space(data, at):
    while data[at] == _SPACE or data[at] == _TAB:
        at += 1
    return at


@inlined
def _behind_string(data, at, escapes):
    """The place behind a string, or _NO; without `escapes`, also if it has one."""
    at += 1
    while data[at] != _QUOTE:
        if data[at] < _SPACE:
            return _NO
        if data[at] == _BACKSLASH:
            at += 1
            escaped = data[at]
            if not escapes:
                return _NO
            if escaped == _U:
                for _ in range(4):
                    at += 1
                    if not _is_in(data[at], _HEXADECIMAL):
                        return _NO
            elif not _is_in(escaped, _ESCAPED):
                return _NO
        at += 1
    return at + 1


@inlined
def _behind_number(data, at):
    """The place behind a number, or _NO."""
    if data[at] == _MINUS:
        at += 1
    if data[at] == _ZERO:
        at += 1
    else:
        at = _behind_digits(data, at)
    if at != _NO and data[at] == _POINT:
        at = _behind_digits(data, at + 1)
    if at != _NO and data[at] | _LOWER == _E:
        at += 1
        if data[at] == _PLUS or data[at] == _MINUS:
            at += 1
        at = _behind_digits(data, at)
    return at


@inlined
def _behind_digits(data, at):
    """The place behind one or more digits, or _NO."""
    first = at
    while _ZERO <= data[at] <= _NINE:
        at += 1
    return at if at > first else _NO


@inlined
def _behind_word(data, at):
    """The place behind `true`, `false` or `null`, or _NO."""
    for word in (_TRUE, _FALSE, _NULL):
        place = 0
        while place < word.size and data[at + place] == word[place]:
            place += 1
        if place == word.size:
            return at + place
    return _NO


@inlined
def _is_in(character, characters):
    found = False
    for other in characters:
        found |= character == other
    return found
