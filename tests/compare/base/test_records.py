"""Dataclasses become rows of Arrow and are the same when they come back."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pytest

from compare.base.records import arrow_type, record_of, row_of, schema_of


@dataclass(frozen=True)
class Inner:
    name: str
    number: int | None


@dataclass(frozen=True)
class Outer:
    share: float
    inner: Inner | None
    several: tuple[Inner, ...]
    numbers: list[int]
    counts: Mapping[str, int]
    flag: bool = False


@pytest.mark.parametrize(
    "record",
    [
        Outer(0.5, Inner("a", 1), (Inner("b", None), Inner("c", 2**62)), [1, 2], {"x": 3}, True),
        Outer(1.0, None, (), [], {}),
    ],
)
def test_a_record_comes_back_from_a_table(record):
    table = pa.Table.from_pylist([row_of(record)], schema_of(Outer))
    assert record_of(Outer, table.to_pylist()[0]) == record


def test_types_are_those_of_the_annotations():
    inner = pa.struct([("name", pa.string()), ("number", pa.int64())])
    assert schema_of(Outer) == pa.schema(
        [
            ("share", pa.float64()),
            ("inner", inner),
            ("several", pa.list_(inner)),
            ("numbers", pa.list_(pa.int64())),
            ("counts", pa.map_(pa.string(), pa.int64())),
            ("flag", pa.bool_()),
        ]
    )
    with pytest.raises(KeyError):
        arrow_type(object)
