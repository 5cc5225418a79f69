"""The expiries of a replay, as both oracles read them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from compare.files import open_parquet
from compare.oracle.compiled import Rows
from compare.pipeline.results import EXPIRIES
from compare.replay.contestant import Contestant
from timers.errors import TimerError
from timers.rounding import AnyRounding, Rounding

_ROWS_AT_ONCE = 1 << 18


class VerifyError(TimerError, ValueError):
    """Results that cannot be verified; one line that names the file and what is wrong."""


def read_expiries(path: Path) -> Iterator[Rows]:
    """The rows of a file of expiries, piece by piece. Raises VerifyError."""
    with open_expiries(path) as file:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=list(Rows._fields)):
            for name in Rows._fields:
                if batch.column(name).null_count:
                    raise VerifyError(f"{path} has a row without {name}")
            # Copied, because Arrow's memory is read-only, which is another type to jitted code.
            yield Rows(*(np.array(batch.column(name).to_numpy()) for name in Rows._fields))


@contextmanager
def open_expiries(path: Path) -> Iterator[pq.ParquetFile]:
    """A file of expiries with the right columns. Raises VerifyError for what cannot be read."""
    with open_parquet(path, VerifyError) as file:
        found = {field.name: field.type for field in file.schema_arrow}
        if any(found.get(field.name) != field.type for field in EXPIRIES):
            columns = ", ".join(f"{name} {kind}" for name, kind in found.items())
            wanted = ", ".join(f"{field.name} {field.type}" for field in EXPIRIES)
            raise VerifyError(f"{path} has the columns ({columns}); expiries have ({wanted})")
        yield file


def rounding_on_workers(timer: Contestant, unit: str) -> Callable[[], AnyRounding]:
    """A function that another process can call for the timer's rounding."""
    rounding = timer.rounding(unit)
    if isinstance(rounding, Rounding):
        return lambda: rounding
    # The module of a rounding function is imported there.
    return lambda: timer.rounding(unit)
