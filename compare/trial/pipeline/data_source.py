"""Workloads as a Spark data source: query their rows without writing a trace.

>>> from compare.trial.pipeline.data_source import register
>>> register(spark)  # doctest: +SKIP
>>> (
...     spark.read.format("timer-workload")
...     .option("workload", "uniform")
...     .option("timers", "1e6")
...     .option("shards", 8)
...     .option("seed", 1)
...     .option("longest", 5000)
...     .load()
... )  # doctest: +SKIP
DataFrame[shard: int, operation: bigint, time: bigint, op: tinyint, id: int, deadline: bigint]

Options: `workload`; `timers` or `operations`; `shards` (default 1); `seed` (default 0); and the
workload's parameters. Numbers may be written as 1e6. `wheelwork generate` writes the same rows with
the same options; `operation` counts a shard's rows from 0. Spark does not guarantee the order of
rows: sort by shard and operation.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from compare.base.arguments import count, integer
from compare.traffic.workloads.catalogue import Plan, WorkloadError, workload_named
from timers.errors import ParameterError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "timer-workload"

_COLUMNS = "shard int, operation bigint, time bigint, op tinyint, id int, deadline bigint"
_BATCH = 1 << 16
"""Rows per batch, 2 MB."""


def register(session: "SparkSession") -> None:
    """Register the format "timer-workload" of `session.read`, also through Spark Connect.

    This package must also be installed on a cluster or a Connect server.
    """
    session.dataSource.register(TimerWorkload)


class TimerWorkload(DataSource):  # type: ignore[misc]  # PySpark has no types here
    """The data source; see the module's docstring."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._plan = plan_of(options)

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return NAME

    def schema(self) -> str:
        """The shard, the number of the row in it, and the columns of a tape."""
        return _COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of all shards."""
        return _Reader(self._plan)


class _Reader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(self._plan.shards)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        begin = 0
        for piece in self._plan.pieces(partition.value):
            size = len(piece.time)
            shard = np.full(size, partition.value, np.int32)
            operation = np.arange(begin, begin + size, dtype=np.int64)
            begin += size
            whole = pa.record_batch([shard, operation, *piece], names=_NAMES)
            for row in range(0, size, _BATCH):
                yield whole.slice(row, _BATCH)


_NAMES = [column.split()[0] for column in _COLUMNS.split(", ")]


def plan_of(options: Mapping[str, str]) -> Plan:
    """Return the plan for a workload with these options.

    Raises:
        WorkloadError: if an option is unknown, missing or invalid.
    """
    texts = {name.lower(): str(value) for name, value in options.items()}
    if "workload" not in texts:
        raise WorkloadError('name a workload, as in .option("workload", "uniform")')
    workload = texts.pop("workload")
    parameters = workload_named(workload).defaults
    for option in texts:
        if option not in _OPTIONS and option not in parameters:
            names = ", ".join([*_OPTIONS, *parameters])
            raise WorkloadError(f"{NAME} has no option {option!r} for {workload}; it has {names}")
    numbers = {option: _number(option, text) for option, text in texts.items()}
    own: dict[str, Any] = {option: numbers.pop(option) for option in _OPTIONS if option in numbers}
    return Plan.of(workload, **own, parameters=numbers)


_OPTIONS = ("timers", "operations", "shards", "seed")


def _number(option: str, text: str) -> int:
    for read in (integer, count):
        try:
            return read(text)
        except ParameterError:
            continue
    raise WorkloadError(f"{option} must be a whole number, such as 5000 or 1e6, not {text[:40]!r}")
