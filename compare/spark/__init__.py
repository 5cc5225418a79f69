"""Spark sessions, tasks and progress, and workloads as a data source."""

from compare.spark.session import spark_session

__all__ = ["spark_session"]
