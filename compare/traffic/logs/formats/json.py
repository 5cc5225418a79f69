"""JSON objects, one per line or in an array; numbers keep the digits of the file."""

import json
import re
import secrets
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compare.traffic.logs.blocks import Block, LogError, Source
from compare.traffic.logs.formats.base import Layout, Log, Records, plain_head
from compare.traffic.logs.formats.json_lines import find_values
from compare.traffic.logs.time_formats import looks_like_time

_SEEN = 1000
"""The number of records whose keys are listed as columns."""
_LOOKED = 10
"""The first lines, one of which must be an object."""
_DEEP = 20
"""More than the arrays and objects around a record."""
_ARRAY = re.compile(r'\[(?:\{|\]$|\[["\[{0-9-])')
_READ = {"spans[]": "spans", "traceEvents[]": "traceEvents"}
"""The ends of paths to records that are read: OTLP's and Jaeger's spans, and Chrome's events."""
_AT_ONCE = 500
"""Texts that are read at a time: few, so that their objects are soon freed."""
_FEW = 1 << 16
"""Bytes of lines that are read by Python, because to load the compiled code takes longer."""
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]]|[^\s,{}\[\]"]+', re.DOTALL)
_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)


@dataclass(frozen=True, kw_only=True)
class JsonLog(Log):
    """JSON objects; a column is a key, or the keys that lead to it: `client.ip`."""

    array: str | None  # "" for one array; the key of arrays that hold the records; None for lines

    format: str = "jsonl"
    fault: str = "it is not a JSON object"
    record = "record"
    columns_vary = True

    @classmethod
    def fits(cls, lines: list[str]) -> bool:
        """The first line begins an object, or an array of objects or arrays."""
        return lines[0].lstrip().startswith("{") or bool(_ARRAY.match(_start(lines)))

    @classmethod
    def from_head(cls, source: Source, lines: list[str], blank: int, layout: Layout) -> Log:
        """The columns are the keys that are seen."""
        recipe = _recipe(lines)
        key = _READ.get((recipe or "").rpartition(".")[2])
        if recipe and key is None:
            raise LogError(
                f"{source.name} is neither an object a line nor an array of objects with times;"
                f" this prints an object a line: jq -c '{recipe}' {shlex.quote(source.name)}"
            )
        array = "" if key is None and _start(lines).startswith("[") else key
        head = plain_head(source)
        texts = head.splitlines()
        if array is not None:
            texts = [head[first:end] for first, end in _elements(head, array)][:_SEEN]
        columns: dict[str, None] = {}
        for first in range(0, len(texts), _AT_ONCE):
            for record in filter(None, _objects(texts[first : first + _AT_ONCE])):
                columns |= dict.fromkeys(_paths(record))
        return cls(source=source, columns=tuple(columns), array=array)

    @property
    def is_text(self) -> bool:
        """If it is Docker's, around lines in no known format."""
        return {"log", "stream", "time"} <= set(self.columns)

    @property
    def has_lines(self) -> bool:
        """Unless it is an array."""
        return self.array is None

    @property
    def divisible(self) -> bool:
        """Unless line ends mean nothing."""
        return super().divisible and self.has_lines

    def cut(self, data: bytes, last: bool) -> int:
        """Behind an object of an array."""
        if last or self.array is None:
            return super().cut(data, last)
        # The last element may go on in the next data.
        ends = [end for _, end in _elements(data, self.array)]
        return ends[-2] if len(ends) > 1 else 0

    def parse(self, data: bytes, block: Block, names: Sequence[str]) -> Records:
        """Find the values of keys."""
        if self.array is not None or len(data) < _FEW:
            texts = data.splitlines()
            if self.array is not None:
                texts = [data[first:end] for first, end in _elements(data, self.array)]
            return _records([text for text in texts if text.strip(b" ")], names)
        lines = find_values(data, [_bytes(name) for name in names])
        fault, values = ~lines.plain, dict(zip(names, lines.values, strict=True))
        if fault.any():
            bounds = lines.bounds[fault].tolist()
            not_plain = _records([data[first:end] for first, end in bounds], names)
            rest = pa.array(fault)
            values = {
                name: pc.replace_with_mask(column, rest, not_plain.texts[name])
                for name, column in values.items()
            }
            fault[fault] = not_plain.fault
        return Records(np.arange(len(fault), dtype=np.int32), fault, values, len(fault))


def _records(texts: list[bytes], names: Sequence[str]) -> Records:
    """The values of keys in texts, which are read by Python."""
    fault: list[bool] = []
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for first in range(0, len(texts), _AT_ONCE):
        objects = _objects(texts[first : first + _AT_ONCE])
        fault += [record is None for record in objects]
        for name, values in columns.items():
            values += _values(objects, name)
    number = np.arange(len(texts), dtype=np.int32)
    arrays = {name: _array(values) for name, values in columns.items()}
    return Records(number, np.array(fault, np.bool_), arrays, len(texts))


def _start(lines: list[str]) -> str:
    return "".join(lines[:100]).replace(" ", "").replace("\t", "")


def _recipe(lines: list[str]) -> str | None:
    """The program for jq that prints a record a line, if the file has another form."""
    start = _start(lines)
    if start.startswith("[[{"):
        return ".[][]"
    if start.startswith("[["):
        return ".[] | {time: .[0], duration: .[1]}"
    if start.startswith("["):
        inner = _path_inside(_beginning("\n".join(lines)[1:]))
        return inner and f".[]{inner}"
    texts = (line.encode(errors="surrogateescape") for line in lines[:_LOOKED])
    objects = list(filter(None, map(_object, texts)))
    if not objects:  # it goes on in the next line
        record = _beginning("\n".join(lines))
        return _path_inside(record) or ("." if record and len(lines) > 1 else None)
    first, *others = objects
    is_row = others and any(isinstance(value, str) for value in first.values())
    return None if is_row else _path_inside(first)


def _beginning(text: str) -> dict[str, Any] | None:
    """The object with which a text begins, as far as the text has it."""
    with suppress(ValueError, RecursionError):
        record = _DECODER.raw_decode(text.lstrip())[0]
        return record if isinstance(record, dict) else None
    # Behind the last object or array that is complete, all others can be closed.
    data, closing, opened = text.encode(errors="surrogateescape"), {b"{": b"}", b"[": b"]"}, []
    end, rest = 0, b""
    for token in _TOKEN.finditer(data):
        if token[0] in closing:
            opened.append(closing[token[0]])
        elif token[0] in closing.values() and opened:
            opened.pop()
            if len(opened) < _DEEP:
                end, rest = token.end(), b"".join(reversed(opened))
    return _object(data[:end] + rest)


def _path_inside(record: dict[str, Any] | None) -> str | None:
    """The path to objects in arrays of an object that has no time itself, or None."""
    path = ""
    while record and not any(map(looks_like_time, _scalars(record))):
        lists = (key for key, value in record.items() if _is_of_objects(value))
        key = next(lists, None)
        if key is None:
            break
        path += f".{key}[]" if key.isidentifier() else f'.["{key}"][]'
        record = record[key][0]
    return path or None


def _scalars(record: dict[str, Any]) -> Iterator[str]:
    """The texts and numbers of an object and of the objects in it."""
    for value in record.values():
        if isinstance(value, dict):
            yield from _scalars(value)
        elif isinstance(value, str):
            yield value


def _is_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _objects(texts: list[bytes]) -> list[dict[str, Any] | None]:
    """The objects in texts: read at once, or where that fails one by one."""
    # Two texts may together be an object, as `{"a": [{}` and `{}]}`. What separates them is then
    # inside of it, and not one of the values; it is random, so that no log contains it.
    between = secrets.token_hex(8)
    joined = f',"{between}",'.encode().join(texts)
    with suppress(ValueError, RecursionError):
        values = _DECODER.decode(f"[{joined.decode(errors='surrogateescape')}]")
        objects: list[dict[str, Any] | None] = values[::2]
        if values[1::2] == [between] * (len(texts) - 1) and {*map(type, objects)} == {dict}:
            return objects
    return [_object(text) for text in texts]


def _object(text: bytes) -> dict[str, Any] | None:
    """The object in a text, or None if there is none. Its numbers are texts."""
    characters = text.strip(b" \t\r\n").decode(errors="surrogateescape")
    try:
        record, end = _DECODER.raw_decode(characters)
    except (ValueError, RecursionError):
        return None
    return record if end == len(characters) and isinstance(record, dict) else None


def _values(objects: list[dict[str, Any] | None], name: str) -> list[Any]:
    """The value of each object under a name."""
    if "." in name:
        return [_nested(record or {}, name) for record in objects]
    return [None if record is None else record.get(name) for record in objects]


def _array(values: list[Any]) -> pa.Array:
    """The texts of values."""
    with suppress(pa.ArrowTypeError, UnicodeEncodeError):
        return pa.array(values, pa.string()).cast(pa.binary())
    return pa.array([None if value is None else _bytes(value) for value in values], pa.binary())


def _nested(record: dict[str, Any], name: str) -> Any:
    """The value under a name, or under the names of objects that lead to it."""
    value = record.get(name)
    for key, inner in record.items():
        if value is None and isinstance(inner, dict) and name.startswith(f"{key}."):
            value = _nested(inner, name.removeprefix(f"{key}."))
    return value


def _bytes(value: Any) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value)
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # half a character, as in "\ud800"
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _paths(record: dict[str, Any], before: str = "") -> Iterator[str]:
    """The keys of an object, and of the objects in it."""
    for key, value in record.items():
        if isinstance(value, dict) and value:
            yield from _paths(value, f"{before}{key}.")
        else:
            yield before + key


def _elements(data: bytes, key: str = "") -> Iterator[tuple[int, int]]:
    """The elements of an array: from, to. The last one may be cut off.

    With a key, they are those of all arrays under this key. Data that goes on behind an element
    begins inside of one.
    """
    name = f'"{key}"'.encode()
    inside = not key or data.lstrip()[:1] in (b",", b"]")
    depth = first = seen = 0  # how much of `"key": [` has been seen
    for token in _TOKEN.finditer(data):
        sign = token[0]
        if not inside:
            if sign == name:
                seen = 1
            elif seen == 2 and sign == b"[":
                inside = True
            else:
                seen = 2 * (seen == 1 and sign == b":")
            continue
        if depth == 0 and sign in (b"[", b"]", b"}"):
            inside, seen = not key or sign == b"[", 0
            continue
        if depth == 0:
            first = token.start()
        depth += (sign in (b"{", b"[")) - (sign in (b"}", b"]"))
        if depth == 0:
            yield first, token.end()
    if depth:
        yield first, len(data)
