"""The executor of a command: threads of this process, or Spark on request."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from compare.base.executors import Threads
from compare.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compare.spark.tasks import SparkTasks


@contextmanager
def executor(
    master: str | None = None, session: "SparkSession | None" = None
) -> Iterator["Threads | SparkTasks"]:
    """Yield an executor: threads of this process, or Spark if a master, a session or SPARK_REMOTE
    is given or the program was started by spark-submit.
    """
    variables = ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT")
    if master is None and session is None and not any(map(os.environ.get, variables)):
        yield Threads()
        return
    from compare.spark.tasks import SparkTasks

    with spark_session(master, session) as spark:
        yield SparkTasks(spark)
