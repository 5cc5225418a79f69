"""Spark sessions, tasks and progress, and workloads as a data source."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compare.spark.session import spark_session

__all__ = ["spark_session"]


def __getattr__(name: str) -> Any:
    """Import `spark_session` when it is first used."""
    if name == "spark_session":
        from compare.spark.session import spark_session

        return spark_session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
