"""Measure the pipeline against two processes that use pyarrow and Numba on the same files.

    python -m tests.bench.pipeline [generate] [replay] [ingest] [verify] [--operations 5e7] \\
                       [--shards 64] [--rounds 3] [--timers A,B] [--rows 8e6] [--logs csv,jsonl]
    python -m tests.bench.pipeline large --operations 1e9

Threads are those of this process, one per core. Each round runs every contender once, one after the
other, so that a ratio compares runs of the same minutes. A session is started before the clock, but
its Java keeps compiling for about ten seconds. The output shows medians with minimum and maximum.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compare.base.arguments import count
from compare.base.datasets import part_name, write_part
from compare.cli.commands.summarise import sheet_of
from compare.spark.session import spark_session
from compare.traffic.logs.ingest import ingest_requests, ingest_touches
from compare.traffic.logs.options import LogOptions
from compare.traffic.tapes.blocks import BLOCKS, blocks_of
from compare.traffic.tapes.tape import Tape, part
from compare.traffic.tapes.trace import Trace, open_trace
from compare.traffic.workloads.catalogue import Plan
from compare.trial.pipeline.generate import generate
from compare.trial.pipeline.replay import replay_trace
from compare.trial.pipeline.summarise import summarise
from compare.trial.pipeline.verify import verify
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import (
    OPERATIONS_AT_ONCE,
    Buffers,
    first_time,
    loop_for,
    operations_of,
)

PROCESSES = 2
PLAIN, THREADS, SPARK = "plain, 2 processes", "threads", "Spark, local[2]"
WORKLOADS = ("uniform", "lognormal-low")
TIMERS = ("cascading-wheel", "hierarchical-wheel")
LARGE, GRID = (
    "lognormal-low",
    ("cascading-wheel", "hierarchical-wheel", "hashed-wheel/tick=1000", "delay-queue"),
)
INGEST_SHARDS = 8
INGESTED = ("small.two", "small", "csv", "bad", "jsonl", "access")


@contextmanager
def sessions() -> Iterator[Callable[[str], Any]]:
    """Yield a function that returns a session on a master; a new one replaces the previous one."""
    with ExitStack() as stack:

        @lru_cache(maxsize=1)
        def on(master: str) -> Any:
            stack.close()
            session = stack.enter_context(spark_session(master))
            numbers = session.range(0, 100, 1, 4)
            numbers.mapInArrow(lambda batches: batches, "id bigint").collect()
            return session

        yield on


def timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def rounds(
    number: int,
    contenders: dict[str, Callable[[], Any]],
    amount: int,
    base: str,
    unit: str,
    clean: Callable[[], None] = lambda: None,
) -> None:
    """Let the contenders take turns; print their throughput and its ratio to that of the base.

    `clean` is called before each run and is not timed.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    work = {name: [] for name in contenders}
    for _ in range(number):
        for name, call in contenders.items():
            clean()
            before = time.process_time()
            seconds[name].append(timed(call))
            work[name].append((time.process_time() - before) / amount * 1e6)
    for name, samples in seconds.items():
        ratios = [a / b for a, b in zip(seconds[base], samples, strict=True)]
        rates = [amount / sample / 1e6 for sample in samples]
        times = [a / b for a, b in zip(work[name], work[base], strict=True)]
        here = f"  {median(work[name]):.2f} us of processor time here, {_spread(times)} times"
        print(f"  {name:<32}{_spread(rates)} M {unit}/s  {_spread(ratios)}{here}", flush=True)


def on_more_cores(
    number: int,
    on: Callable[[str], Any],
    call: Callable[..., Any],
    amount: int,
    clean: Callable[[], None] = lambda: None,
) -> None:
    """Print the throughput of a call on one core and on two, each after a run to warm up."""
    rates = []
    for master in ("local[1]", "local[2]"):
        session, samples = on(master), []
        for _ in range(number + 1):
            clean()
            samples.append(amount / timed(partial(call, session=session)) / 1e6)
        rates.append(median(samples[1:]))
        print(f"  Spark, {master}: {_spread(samples[1:])} M a second")
    print(f"  local[1] to local[2]: {rates[1] / rates[0]:.2f}")


def _spread(samples: list[float]) -> str:
    return f"{median(samples):6.2f} ({min(samples):.2f} .. {max(samples):.2f})"


# ---- plain: two processes, no Spark


def plain_generate(pool: Any, plan: Plan, directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    shards = [(plan, number, directory) for number in range(plan.shards)]
    pool.starmap(plain_generate_shard, shards, chunksize=1)


def plain_generate_shard(plan: Plan, number: int, directory: Path) -> None:
    write_part(directory / part_name(number), BLOCKS, blocks_of(number, plan.pieces(number)))


def plain_replay_shard(path: str, number: int, id_space: int, timer: str, unit: str) -> int:
    """Read a shard, replay it and count the expiries, without checking or writing anything."""
    rows = pa.Table.from_batches(open_trace(path).rows(number, number + 1))
    columns = [pc.list_flatten(rows[name]).to_numpy() for name in Tape._fields]
    tape = Tape(*map(np.array, columns))
    loop = loop_for(
        contestant(timer).new(unit, first_time(tape)), Buffers(id_space), lambda rows: None
    )
    for first in range(0, tape.time.size, OPERATIONS_AT_ONCE):
        loop.run(operations_of(part(tape, first, first + OPERATIONS_AT_ONCE)))
    loop.drain()
    return loop.finish().fired


def plain_replay(pool: Any, trace: Trace, timers: list[str]) -> int:
    work = [
        (str(trace.path), number, shard.id_space, timer, trace.unit)
        for number, shard in enumerate(trace.shards)
        for timer in timers
    ]
    return sum(pool.starmap(plain_replay_shard, work, chunksize=1))


# ---- the stages


def bench_generate(
    on: Callable[[str], Any], directory: Path, options: argparse.Namespace, name: str
) -> None:
    plan = Plan.of(name, operations=options.operations, shards=options.shards)
    amount = {"operations": options.operations, "shards": options.shards}

    def generated(**executor: Any) -> None:
        generate(name, directory / name, **amount, force=True, **executor)

    print(f"generate {name}, {options.operations:,} operations in {options.shards} shards")
    on("local[2]")
    with get_context("spawn").Pool(PROCESSES) as pool:
        warm_up = Plan.of(name, operations=10_000, shards=4)  # loads the compiled code
        plain_generate(pool, warm_up, directory / "plain")
        contenders = {
            PLAIN: lambda: plain_generate(pool, plan, directory / "plain"),
            THREADS: generated,
            SPARK: lambda: generated(session=on("local[2]")),
        }
        rounds(options.rounds, contenders, options.operations, PLAIN, "operations")


def trace_of(directory: Path, options: argparse.Namespace, name: str) -> Trace:
    path = directory / name
    if not path.exists():
        generate(name, path, operations=options.operations, shards=options.shards)
    return open_trace(path)


def bench_replay(
    on: Callable[[str], Any], directory: Path, options: argparse.Namespace, name: str
) -> None:
    trace = trace_of(directory, options, name)
    timers, out = options.timers, directory / "replayed"

    def replayed(expiries: bool, **executor: Any) -> None:
        replay_trace(trace.path, timers, out, expiries=expiries, **executor)

    def clean() -> None:
        shutil.rmtree(out, ignore_errors=True)

    rows = trace.totals["rows"]
    print(
        f"replay {trace.path.name}, {rows:,} operations in {options.shards} shards"
        f" x {', '.join(timers)}"
    )
    with get_context("spawn").Pool(PROCESSES) as pool:
        plain_replay(pool, trace, timers)  # load the compiled code
        on("local[2]")
        contenders = {
            PLAIN: lambda: plain_replay(pool, trace, timers),
            f"{THREADS}, summaries only": lambda: replayed(False),
            f"{THREADS}, every expiry written": lambda: replayed(True),
            f"{SPARK}, summaries only": lambda: replayed(False, session=on("local[2]")),
            f"{SPARK}, every expiry written": lambda: replayed(True, session=on("local[2]")),
        }
        rounds(options.rounds, contenders, rows * len(timers), PLAIN, "operations", clean)
    on_more_cores(options.rounds, on, partial(replayed, False), rows * len(timers), clean)
    clean()


def bench_verify(
    on: Callable[[str], Any], directory: Path, options: argparse.Namespace, name: str
) -> None:
    trace = trace_of(directory, options, name)
    out = directory / "to-verify"
    shutil.rmtree(out, ignore_errors=True)
    replay_trace(trace.path, TIMERS[:1], out)
    timers = trace.totals["starts"] + trace.totals["arms"] + trace.totals["rearms"]
    print(f"verify {trace.path.name}, {timers:,} timers armed, {TIMERS[0]}")
    contenders = {
        THREADS: lambda: verify(out),
        SPARK: lambda: verify(out, session=on("local[2]")),
    }
    rounds(options.rounds, contenders, timers, THREADS, "timers")


LINES = {
    "csv": "{time:.6f},{duration:.6f},{key}\n",
    "jsonl": '{{"start": {time:.6f}, "duration": {duration:.6f}, "key": "{key}"}}\n',
    "access": '{key} - - [{date}] "GET /item/{row} HTTP/1.1" 200 {row} "-"'
    ' "Mozilla/5.0 (X11; Linux x86_64)" {duration:.3f}\n',
}
COLUMNS = "{'start': 'DECIMAL(18,6)', 'duration': 'DECIMAL(18,6)', 'key': 'VARCHAR'}"
READERS = {
    "csv": "read_csv('{log}', columns={columns})",
    "jsonl": "read_json('{log}', columns={columns}, format='newline_delimited')",
}
QUERIES = {
    "sorted, to Parquet": "COPY (SELECT * FROM {reader} ORDER BY start) TO '{out}'",
    "into a table": "CREATE OR REPLACE TEMP TABLE log AS SELECT * FROM {reader}",
}
"""How DuckDB reads the same columns, for scale; JSON numbers lose digits."""
BAD = ("oops\n", "1700000000,never,a\n", "1700000000,1\n", "never,1,a\n", "\n")


def write_log(path: Path, kind: str, rows: int) -> None:
    """A log of 1 000 requests per second, a second out of order."""
    rng = random.Random(0)
    with path.open("w") as file:
        if kind in ("csv", "bad"):
            file.write("start,duration,key\n")
        for row in range(rows):
            time_, date = 1_700_000_000 + row / 1000 + rng.random(), ""
            if kind == "access":
                date = datetime.fromtimestamp(time_, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
            values = {
                "time": time_,
                "duration": rng.random() * 0.3,
                "row": row % 9973,
                "date": date,
            }
            form = LINES["csv" if kind == "bad" else kind]
            line = form.format(key=f"10.0.{row % 250}.{row % 199}", **values)
            file.write(rng.choice(BAD) if kind == "bad" and row % 100 == 99 else line)


def bench_ingest(
    on: Callable[[str], Any], directory: Path, options: argparse.Namespace, name: str
) -> None:
    log, rows = directory / name, int(options.rows)
    kind = name.partition(".")[0]
    if kind == "small":
        write_log(log, "csv", rows := 2 if "two" in name else 20_000)
        command = ["ingest", "requests", log, "--time", "start", "--duration", "duration"]
        command += ["--timeout", "200ms", "--force", "--out", directory / "ingested"]
        call = [sys.executable, "-m", "compare", *map(str, command)]
        run = partial(subprocess.run, call, check=True, capture_output=True)
        samples = [timed(run) for _ in range(options.rounds + 1)][1:]
        print(f"ingest {rows:,} rows, the whole command: {_spread(samples)} s")
        return
    rows = rows if kind == "csv" else rows // 4
    write_log(log, kind, rows)
    print(f"ingest {kind}, {rows:,} rows of {log.stat().st_size // rows} bytes")
    time_ = "time" if kind == "access" else "start"

    def ingest(touches: bool = False, shards: int = INGEST_SHARDS, session: Any = None) -> Any:
        settings = LogOptions(time_, unit="us", shards=shards, force=True)
        out: tuple[Any, ...] = (log, directory / "ingested", settings)
        if touches:
            key = "client" if kind == "access" else "key"
            return ingest_touches(*out, key=key, idle="30s", session=session)
        meant = {"duration": "extra1" if kind == "access" else "duration", "timeout": "200ms"}
        meant |= {"time_is": "end"} if kind == "access" else {}
        return ingest_requests(*out, **meant, session=session)

    contenders: dict[str, Callable[[], Any]] = {}
    if kind in READERS:
        import duckdb  # this module can be imported without it

        reader = READERS[kind].format(log=log, columns=COLUMNS)
        for what, query in QUERIES.items():
            contenders[f"DuckDB, {what}"] = partial(
                duckdb.sql, query.format(reader=reader, out=directory / "sorted.parquet")
            )
    contenders |= {f"{THREADS}, requests": ingest, f"{THREADS}, touches": partial(ingest, True)}
    base = next(iter(contenders))
    if kind != "csv":
        rounds(options.rounds, contenders, rows, base, "rows")
        return
    contenders["threads, one shard"] = partial(ingest, shards=1)
    with peak_memory():
        rounds(options.rounds, contenders, rows, base, "rows")
    on_more_cores(options.rounds, on, ingest, rows)


def resident() -> int:
    """Resident bytes of this process and its descendants (Linux).

    Shared pages are counted once per process.
    """
    pages, parents = {}, {}
    for directory in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            pid = int(directory.name)
            parents[pid] = int((directory / "stat").read_text().rpartition(")")[2].split()[1])
            pages[pid] = int((directory / "statm").read_text().split()[1])
    family = {os.getpid()}
    while children := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= children
    return sum(pages.get(pid, 0) for pid in family) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def peak_memory() -> Iterator[None]:
    """Print the peak resident memory of the block, sampled every half second."""
    peak, ended = resident(), threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(0.5):
            peak = max(peak, resident())

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()
        print(f"  peak memory of all processes: {peak / 2**30:.2f} GiB")


def bench_large(
    on: Callable[[str], Any], directory: Path, options: argparse.Namespace, name: str
) -> None:
    """Generate, replay and summarise a trace that is much larger than the memory needed."""
    print(
        f"{name}, {options.operations:,} operations in {options.shards} shards x {', '.join(GRID)}"
    )
    amount = {"operations": options.operations, "shards": options.shards}
    trace, out = directory / "large", directory / "large-replayed"
    replayed = options.operations * len(GRID)
    steps = {
        "generate": (options.operations, lambda: generate(name, trace, **amount)),
        "replay, every expiry written": (replayed, lambda: replay_trace(trace, GRID, out)),
        "summarise": (replayed, lambda: print(sheet_of(summarise(out)).text())),
    }
    for label, (operations, step) in steps.items():
        with peak_memory():
            seconds = timed(step)
            print(f"  {label:<44}{operations / seconds / 1e6:8.2f} M operations/s, {seconds:.0f} s")
    for path in (trace, out):
        size = sum(file.stat().st_size for file in path.rglob("*.parquet"))
        print(f"  {path.name}: {size / 2**30:.2f} GiB")


STAGES = {
    "generate": (bench_generate, WORKLOADS),
    "replay": (bench_replay, WORKLOADS),
    "ingest": (bench_ingest, INGESTED),
    "verify": (bench_verify, WORKLOADS),
}
"""Stage -> its function, and the names of its inputs."""

ALL = STAGES | {"large": (bench_large, (LARGE,))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "stages",
        nargs="*",
        metavar="STAGE",
        help=f"any of {', '.join(ALL)}; default: all but large",
    )
    parser.add_argument("--operations", type=count, default=50_000_000)
    parser.add_argument("--shards", type=count, default=64)
    parser.add_argument("--rows", type=count, default=8_000_000, help="of the CSV to ingest")
    parser.add_argument("--logs", type=lambda text: text.split(","), help="to ingest")
    parser.add_argument("--rounds", type=count, default=3)
    parser.add_argument(
        "--timers", type=lambda text: text.split(","), default=list(TIMERS), help="to replay"
    )
    parser.add_argument("--directory", type=Path, help="parent of the temporary files")
    options = parser.parse_args()
    if unknown := set(options.stages) - ALL.keys():
        parser.error(f"no stage is called {sorted(unknown)[0]!r}; there are {', '.join(ALL)}")
    print("throughput, and its ratio to the first of the same round: median (min .. max)")
    with tempfile.TemporaryDirectory(dir=options.directory) as directory, sessions() as on:
        for stage in options.stages or STAGES:
            bench, inputs = ALL[stage]
            for name in options.logs or inputs if stage == "ingest" else inputs:
                bench(on, Path(directory), options, name)


if __name__ == "__main__":
    main()
