"""The process that forks Spark's Python workers, with the libraries imported beforehand.

Each worker would otherwise import them again: a second and a half whenever a task has failed. The
project itself is left for the workers to import.
"""

import numba.extending  # noqa: F401  # for the workers to have, like the next two
import pandas  # noqa: F401
import pyarrow.parquet  # noqa: F401
from numba.core.registry import cpu_target
from pyspark.daemon import manager

if __name__ == "__main__":
    cpu_target.typing_context.refresh()  # what Numba does before it first compiles something
    cpu_target.target_context.refresh()
    manager()
