"""DataFrames of Spark, classic or Connect: their columns, types and observations."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation


def is_frame(value: object) -> bool:
    """Whether a value is a DataFrame of Spark. Does not import PySpark."""
    kinds = (f"{kind.__module__}.{kind.__name__}" for kind in type(value).__mro__)
    return "pyspark.sql.dataframe.DataFrame" in kinds


def leaves(frame: "DataFrame") -> list[tuple[str, Any]]:
    """The columns that are not structures, as `client.ip`, and their types."""
    return [(".".join(path), kind) for path, kind in _leaves(frame.schema)]


def selected(frame: "DataFrame", names: Iterable[str]) -> list[str]:
    """Expressions of the columns with these names of `leaves`. They are named column0, ...

    A name with a point would not be the name of a column to Spark.
    """
    paths = {".".join(path): path for path, _ in _leaves(frame.schema)}
    return [f"{quoted(paths[name])} AS column{number}" for number, name in enumerate(names)]


def quoted(path: Sequence[str]) -> str:
    """A name of several parts in SQL."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


def _leaves(schema: Any) -> list[tuple[tuple[str, ...], Any]]:
    found: list[tuple[tuple[str, ...], Any]] = []
    for field in schema.fields:
        if field.dataType.typeName() == "struct":
            found += [((field.name, *path), kind) for path, kind in _leaves(field.dataType)]
        else:
            found.append(((field.name,), field.dataType))
    return found


def arrow_type(kind: Any) -> pa.DataType | None:
    """The Arrow type of the values of a column, or None for lists, maps, and what Arrow lacks."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    if kind.typeName() in ("array", "map"):
        return None
    if kind.typeName() == "timestamp":
        return pa.timestamp("us", "UTC")
    try:
        return to_arrow_type(kind)
    except PySparkException:
        return None


def expressions(texts: Iterable[str]) -> "list[Column]":
    """Columns of expressions in SQL."""
    from pyspark.sql.functions import expr

    return list(map(expr, texts))


def new_observation() -> "Observation":
    """An observation of a DataFrame."""
    from pyspark.sql import Observation

    return Observation()
