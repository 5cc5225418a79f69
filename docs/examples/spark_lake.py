"""From a lake to a table of timers, cell by cell, as in a notebook. It needs `.[pipeline]`.

python docs/examples/spark_lake.py
"""

# %% A lake: requests in a directory for each day and hour. Yours is there already.

import tempfile

from compare import dataframes, ingest_requests, spark_session

lake = f"{tempfile.mkdtemp()}/requests"
spark = spark_session().__enter__()
requests = spark.range(100_000).selectExpr(
    "timestamp '2026-03-01 00:00:00' + make_dt_interval(0, 0, 0, id / 50) AS start",
    "struct(IF(id % 500 = 0, 7.5, 0.02 + id % 90 / 1000) AS seconds) AS answer",
    "date(start) AS dt",
    "hour(start) AS hour",
)
requests.write.partitionBy("dt", "hour").parquet(lake)

# %% What came on that day becomes blocks of operations. Spark reads only what it needs.

df = spark.read.parquet(lake).where("dt = '2026-03-01'")
blocks = ingest_requests(df, time="start", duration="answer.seconds", timeout="5s")

# %% Timers replay the blocks, each expiry is checked, and the outcomes are added up: one plan.

timers = ["cascading-wheel", "hashed-wheel/tick=5ms", "delay-queue"]
results = dataframes.replay(blocks, timers, check=True)
columns = ["contestant", "operations", "fired", "most_pending", "lateness_max", "mismatches"]
dataframes.summarise(results).select(*columns).orderBy("contestant").show(truncate=False)

# %% Expiries are rows, too.

dataframes.expiries(results).groupBy("contestant").count().orderBy("contestant").show()
