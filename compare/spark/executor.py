"""The executor that a command runs on: threads of this process, or Spark where it is asked for."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from compare.executors import Executor, Threads
from compare.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def executor(
    master: str | None = None, session: "SparkSession | None" = None
) -> Iterator[Executor]:
    """Threads of this process, or Spark where a master, a session or SPARK_REMOTE is given, or the
    program was started by spark-submit.
    """
    asked = ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT")
    if master is None and session is None and not any(os.environ.get(name) for name in asked):
        yield Threads()
        return
    from compare.spark.tasks import SparkTasks

    with spark_session(master, session) as spark:
        yield SparkTasks(spark)
