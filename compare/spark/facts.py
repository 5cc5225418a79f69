"""Facts about a Spark session: its kind, versions and cores."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ON_A_CLUSTER = 64
"""The assumed number of cores of a cluster, unless more are known."""


def is_remote(session: "SparkSession") -> bool:
    """Whether a session is a client of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def about(session: "SparkSession") -> dict[str, str | None]:
    """Return master, and versions of Spark and Java; Java is None through Spark Connect."""
    master = session.conf.get("spark.master", "") or ""
    java = None
    if not is_remote(session):
        java = session.sparkContext._jvm.System.getProperty("java.version")
    # Without the number of tries that `_with_tries` has added.
    return {"master": re.sub(r",\d+\]$", "]", master), "spark": session.version, "java": java}


def about_text(session: "SparkSession") -> str:
    """Say on what a session runs: Spark, master, cores, Java and pages, as far as they are known.

    The cores are those of the executors that have registered so far.
    """
    facts = about(session)
    known = [f"Spark {facts['spark']} on {facts['master'] or 'Spark Connect'}"]
    if not is_remote(session):
        context = session.sparkContext
        number = context.defaultParallelism
        known += [f"{number} core{'s' * (number != 1)}", f"Java {facts['java']}"]
        known += [context.uiWebUrl] if context.uiWebUrl else []
    return ", ".join(known)


def cores(session: "SparkSession") -> int:
    """An upper estimate of how many tasks can run at a time.

    The executors of a cluster register one by one after a session has started, and Spark Connect
    does not report how many there are.
    """
    if is_remote(session):
        return _ON_A_CLUSTER
    known = int(session.sparkContext.defaultParallelism)
    is_local = (session.conf.get("spark.master") or "").startswith("local")
    return known if is_local else max(known, _ON_A_CLUSTER)
