"""Dataclasses as rows of Arrow tables, and back.

>>> @dataclasses.dataclass
... class Place:
...     shard: int
...     name: str | None = None
>>> schema_of(Place)
shard: int64
name: string
>>> record_of(Place, {"shard": 3, "name": None})
Place(shard=3, name=None)
"""

import dataclasses
import types
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

Record = TypeVar("Record")


@cache
def _hints_of(record: Any) -> dict[str, Any]:
    """The types of a record's fields. Cached, as it takes longer than a row."""
    return get_type_hints(record)


_TYPES = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}


def schema_of(record: type) -> pa.Schema:
    """The schema of a table whose rows are `row_of` such records."""
    return pa.schema(_fields(record))


def arrow_type(kind: Any) -> pa.DataType:
    """The Arrow type of values with this annotation. Raises KeyError if there is none."""
    kind = _not_none(kind)
    if dataclasses.is_dataclass(kind):
        return pa.struct(_fields(kind))
    arguments = get_args(kind)
    if get_origin(kind) in (list, tuple, Sequence):
        return pa.list_(arrow_type(arguments[0]))
    if get_origin(kind) in (dict, Mapping):
        return pa.map_(*map(arrow_type, arguments))
    return _TYPES[kind]


def row_of(record: Any) -> dict[str, Any]:
    """The row of a record, as `pyarrow.Table.from_pylist` takes it.

    Unlike `dataclasses.asdict`, it does not copy long lists of numbers one by one.
    """
    return {field.name: _plain(getattr(record, field.name)) for field in dataclasses.fields(record)}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return row_of(value)
    if isinstance(value, list | tuple) and value and dataclasses.is_dataclass(value[0]):
        return [row_of(item) for item in value]
    return value


def record_of(record: type[Record], row: Mapping[str, Any]) -> Record:
    """The record of a row, as `pyarrow.Table.to_pylist` returns it."""
    kind: Any = record
    hints = _hints_of(kind)
    return record(**{name: _value(hints[name], value) for name, value in row.items()})


def _value(kind: Any, value: Any) -> Any:
    kind = _not_none(kind)
    if value is None:
        return None
    if dataclasses.is_dataclass(kind):
        return record_of(kind, value)  # type: ignore[arg-type]  # it is a class
    origin = get_origin(kind)
    if origin in (list, tuple):
        item_kind = get_args(kind)[0]
        is_plain = item_kind in _TYPES
        return origin(value if is_plain else (_value(item_kind, item) for item in value))
    return dict(value) if origin in (dict, Mapping) else value


def _fields(record: Any) -> list[tuple[str, pa.DataType]]:
    hints = _hints_of(record)
    return [(field.name, arrow_type(hints[field.name])) for field in dataclasses.fields(record)]


def _not_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (option for option in get_args(kind) if option is not types.NoneType)
    return kind
