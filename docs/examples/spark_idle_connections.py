"""Find idle connections in a stream with Spark's `session_window`.

A connection is idle 30 s after its last event. Events may arrive up to 10 s late.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import functions as F

from compare import spark_session

EVENTS = """\
2026-01-31 12:00:00,a
2026-01-31 12:00:12,a
2026-01-31 12:00:01,b
2026-01-31 12:00:45,b
2026-01-31 12:05:00,c
"""

with TemporaryDirectory() as folder, spark_session("local[2]") as spark:
    Path(folder, "events").mkdir()
    Path(folder, "events", "1.csv").write_text(EVENTS)  # a stream reads files as they appear
    events = spark.readStream.schema("time TIMESTAMP, key STRING").csv(f"{folder}/events")
    sessions = events.withWatermark("time", "10 seconds").groupBy(
        "key", F.session_window("time", "30 seconds").alias("session")
    )
    idle = sessions.agg(F.count("*").alias("events")).writeStream.outputMode("append")
    idle = idle.format("memory").queryName("idle").option("checkpointLocation", f"{folder}/state")
    idle.trigger(availableNow=True).start().awaitTermination()
    for row in spark.table("idle").orderBy("session.end").collect():
        print(f"{row.key} idle at {row.session.end:%H:%M:%S}, events: {row.events}")
