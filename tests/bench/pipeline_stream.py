"""Events a second of idle-connection detection: this project's stream, session_window, and a loop
without Spark.

    python -m tests.bench.pipeline_stream [--events 8e6] [--connections 1e5] [--batch 1e6] [--rounds
    3] [--master local[2]]

All read the same Parquet files, one micro-batch for `batch` events, and discard what they find;
their numbers of idle connections must agree. The first micro-batch of each, in which programs start
and compile, does not count. Rounds take turns, so that each ratio is of runs in the same minutes.
Prints every sample, and what the state takes.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compare.arguments import count
from compare.pipeline.idle import CONNECTIONS, decode, encode, merge
from compare.pipeline.stream import (
    DEFAULT_SHARDS,
    EXPIRED,
    METRICS,
    idle_connections,
)
from compare.spark.session import spark_session

IDLE, DELAY = 30_000_000, 10_000_000  # microseconds
JITTER = 5_000_000  # microseconds that an event may stand out of order: less than the delay
PER_SECOND = 20_000  # events, so that a connection of 100 000 is silent for five seconds on average
FILES = 4  # of a micro-batch: a file is read by one core
START = 1_700_000_000_000_000


def write_events(directory: Path, events: int, connections: int, batch: int) -> int:
    """Files of a quarter of a batch each: any connection at any time; returns their number."""
    rng = np.random.default_rng(0)
    names = pa.array(
        [
            f"10.{k >> 16 & 255}.{k >> 8 & 255}.{k & 255}:{40_000 + k % 20_000}"
            for k in range(connections)
        ]
    )
    batch //= FILES
    files = max(events // batch, 2 * FILES)
    for number in range(files):
        place = np.arange(number * batch, (number + 1) * batch)
        at = START + place * (1_000_000 // PER_SECOND) - rng.integers(0, JITTER, batch)
        key = names.take(pa.array(rng.integers(0, connections, batch)))
        table = pa.table({"time": pa.array(at, pa.timestamp("us", tz="UTC")), "key": key})
        pq.write_table(table, directory / f"{number:05}.parquet")
    return files


def stream(session: Any, source: Path, shards: int | None) -> tuple[float, int, int]:
    """Seconds for an event, idle connections found, bytes of state; `session_window` where there
    are no shards.
    """
    from pyspark.sql import functions as F

    events = session.readStream.schema("time timestamp, key string").option(
        "maxFilesPerTrigger", FILES
    )
    events = events.parquet(str(source))
    if shards is None:
        windows = events.withWatermark("time", f"{DELAY} microseconds").groupBy(
            "key", F.session_window("time", f"{IDLE} microseconds")
        )
        found = windows.count().observe(METRICS, F.count(F.lit(1)).alias(EXPIRED))
    else:
        found = idle_connections(
            events,
            time="time",
            key="key",
            idle=f"{IDLE}us",
            delay=f"{DELAY}us",
            shards=shards,
        )
    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            found.writeStream.format("noop")
            .outputMode("append")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        progress = query.recentProgress
        counted = [p for p in progress[1:] if p.numInputRows]
        seconds = sum(p.durationMs["triggerExecution"] for p in counted) / 1e3
        state = max(p.stateOperators[0].memoryUsedBytes for p in progress)
    expired = sum(
        (p.observedMetrics[METRICS][EXPIRED] or 0) for p in progress if METRICS in p.observedMetrics
    )
    return seconds / sum(p.numInputRows for p in counted), expired, state


def loop(source: Path) -> tuple[float, int, int]:
    """The same in this process, with all connections in one shard whose state is written and read
    in each batch.
    """
    state, clock, expired, seconds, events, most = (
        encode(CONNECTIONS.empty_table(), 1),
        0,
        0,
        0.0,
        0,
        0,
    )
    files = sorted(source.glob("*.parquet"))
    batches = [files[begin : begin + FILES] for begin in range(0, len(files), FILES)]
    for number, paths in enumerate([*batches, []]):
        began = time.perf_counter()
        connections = decode(state, 1)
        latest = clock
        if paths:
            table = pa.concat_tables(pq.read_table(path) for path in paths).combine_chunks()
            at = table["time"].chunk(0).cast(pa.int64()).to_numpy()
            key = table["key"].chunk(0).cast(pa.large_binary())
            late = at < clock * 1000
            assert not late.any()
            connections = merge(connections, key, at, IDLE)
            latest = (int(at.max()) - DELAY) // 1000
        is_idle = pc.less(connections["last"], clock * 1000 - IDLE)
        expired += pc.sum(is_idle).as_py() or 0
        connections = connections.filter(pc.invert(is_idle))
        state = encode(connections, 1)
        clock = latest
        if 0 < number < len(batches):
            seconds += time.perf_counter() - began
            events += len(at)
        most = max(most, len(state))
    return seconds / events, expired, most


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=count, default=8_000_000)
    parser.add_argument("--connections", type=count, default=100_000)
    parser.add_argument("--batch", type=count, default=1_000_000)
    parser.add_argument("--rounds", type=count, default=3)
    parser.add_argument("--shards", type=count, default=DEFAULT_SHARDS)
    parser.add_argument("--partitions", type=count, help="of the state (default: one a core)")
    parser.add_argument("--only", choices=("stream", "session_window", "loop"))
    parser.add_argument("--master", default="local[2]")
    arguments = parser.parse_args()
    samples: dict[str, list[tuple[float, int, int]]] = {
        "stream": [],
        "session_window": [],
        "loop": [],
    }
    with tempfile.TemporaryDirectory() as directory, spark_session(arguments.master) as session:
        source = Path(directory)
        write_events(source, arguments.events, arguments.connections, arguments.batch)
        session.conf.set(
            "spark.sql.shuffle.partitions",
            str(arguments.partitions or session.sparkContext.defaultParallelism),
        )
        runs = {
            "stream": lambda: stream(session, source, arguments.shards),
            "session_window": lambda: stream(session, source, None),
            "loop": lambda: loop(source),
        }
        for _ in range(arguments.rounds):
            for name, run in runs.items():
                if arguments.only in (None, name):
                    samples[name].append(run())
                    print(name, f"{1e-6 / samples[name][-1][0]:.3f} M events/s", flush=True)
    found = {expired for rounds in samples.values() for _, expired, _ in rounds}
    if len(found) != 1:
        raise SystemExit(f"they disagree: {samples}")
    for name, rounds in samples.items():
        if rounds:
            rates = sorted(1e-6 / seconds for seconds, _, _ in rounds)
            state = max(nbytes for _, _, nbytes in rounds) / arguments.connections
            base = [seconds for seconds, _, _ in samples["stream"]]
            ratio = (
                median(s / b for b, (s, _, _) in zip(base, rounds, strict=True))
                if base
                else float("nan")
            )
            print(
                f"{name:<16}{median(rates):7.3f} M events/s [{rates[0]:.3f} .. {rates[-1]:.3f}]"
                f"  {1 / ratio:5.2f} of the stream's rate;"
                f" state at most {state:,.0f} bytes a connection"
            )
    print(f"{found.pop():,} idle connections found by each")


if __name__ == "__main__":
    main()
