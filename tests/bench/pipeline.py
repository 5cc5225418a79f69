"""The pipeline's throughput, as ratios to two processes with pyarrow and Numba on the same files.

    nox -s pipeline -- [generate] [replay] [ingest] [verify] [--operations 5e7] [--shards 64] \\
                       [--rounds 3] [--timers A,B]
    nox -s pipeline -- large --operations 1e9

Threads are those of this process, one for each core. Each round runs every contender once, one
after the other, so that a ratio compares runs of the same minutes. A session is started before the
clock runs, but its Java goes on compiling for about ten seconds. The output shows medians, with the
least and the greatest.
"""

import argparse
import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from compare.arguments import count
from compare.cli.commands.summarise import text_of
from compare.pipeline.generate import generate
from compare.pipeline.ingest import Options, ingest_requests
from compare.pipeline.replay import replay_trace
from compare.pipeline.summarise import summarise
from compare.pipeline.verify import verify
from compare.replay.contestant import contestant
from compare.replay.engine import operations_of
from compare.replay.loops import CELLS, FIRED, FIRST, NEXT, ROWS, drain, run
from compare.spark.session import spark_session
from compare.tapes.tape import CANCEL, Tape, part
from compare.tapes.trace import Trace, open_trace
from compare.workloads.catalogue import Plan
from compare.workloads.writing import write_shard
from timers.kernels.pool import EXPIRY

PROCESSES = 2
PLAIN, THREADS, SPARK = "plain, 2 processes", "threads", "Spark, local[2]"
WORKLOADS = ("uniform", "lognormal-low")
TIMERS = ("cascading-wheel", "hierarchical-wheel")
CSV_ROWS = 16_000_000
LARGE, GRID = (
    "lognormal-low",
    ("cascading-wheel", "hierarchical-wheel", "hashed-wheel/tick=1000", "delay-queue"),
)
INGEST_SHARDS = 8


@contextmanager
def sessions() -> Iterator[Callable[[str], Any]]:
    """Sessions on a master, one at a time; started anew only when the master changes."""
    running: dict[str, Any] = {}

    def on(master: str) -> Any:
        if master not in running:
            stop()
            entered = spark_session(master)
            running[master] = (entered, entered.__enter__())
            running[master][1].range(0, 100, 1, 4).mapInArrow(
                lambda batches: batches, "id bigint"
            ).collect()
        return running[master][1]

    def stop() -> None:
        for entered, _ in running.values():
            entered.__exit__(None, None, None)
        running.clear()

    try:
        yield on
    finally:
        stop()


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
    """Run all contenders in turns and print their throughput and its ratio to that of the base.

    `clean` is called before each run, and not timed.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(number):
        for name, call in contenders.items():
            clean()
            seconds[name].append(timed(call))
    for name, samples in seconds.items():
        ratios = [one / other for one, other in zip(seconds[base], samples, strict=True)]
        rates = [amount / one / 1e6 for one in samples]
        print(f"  {name:<44}{_spread(rates)} M {unit}/s  {_spread(ratios)}", flush=True)


def _spread(samples: list[float]) -> str:
    return f"{median(samples):6.2f} ({min(samples):.2f} .. {max(samples):.2f})"


# ---- plain: two processes, no Spark


def plain_generate(pool: Any, plan: Plan, directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    pool.starmap(
        write_shard, [(plan, number, directory) for number in range(plan.shards)], chunksize=1
    )


def plain_replay_shard(path: str, id_space: int, timer: str, unit: str) -> int:
    """Read a shard, replay it, and count what fires: nothing is checked, nothing written."""
    columns = pq.read_table(path)
    tape = Tape(*(np.array(columns.column(name).to_numpy()) for name in Tape._fields))
    made = contestant(timer).new(unit, int(tape.time[0]))
    armings = int(np.count_nonzero(tape.op != CANCEL))
    made.reserve(min(armings, id_space + 1))
    cursor, handles = np.zeros(CELLS, np.int64), np.zeros(id_space, np.int64)
    fired = np.ones(1 << 20, EXPIRY)
    armed_by, rows = np.zeros(made.state.nodes.size, np.int32), 0
    early = -made.traits.rounding(made.parameters).bounds()[0]
    for first in range(0, tape.time.size, 1 << 16):
        operations = operations_of(part(tape, first, first + (1 << 16)))
        cursor[FIRST], cursor[NEXT] = first, 0
        while cursor[NEXT] < operations.size:
            run(made.state, operations, early, cursor, handles, armed_by, fired)
            rows, cursor[ROWS] = rows + int(cursor[ROWS]), 0
    while len(made):
        drain(made.state, cursor, armed_by, fired)
        rows, cursor[ROWS] = rows + int(cursor[ROWS]), 0
    assert fired.view(FIRED).size
    return rows


def plain_replay(pool: Any, trace: Trace, timers: list[str]) -> int:
    work = [
        (str(trace.path / shard.file), shard.id_space, timer, trace.unit)
        for shard in trace.shards
        for timer in timers
    ]
    return sum(pool.starmap(plain_replay_shard, work, chunksize=1))


# ---- the stages


def bench_generate(on: Callable[[str], Any], directory: Path, options: argparse.Namespace) -> None:
    for name in WORKLOADS:
        generate_one(on, directory, options, name)


def generate_one(
    on: Callable[[str], Any], directory: Path, options: argparse.Namespace, name: str
) -> None:
    plan = Plan.of(name, operations=options.operations, shards=options.shards)
    amount = {"operations": options.operations, "shards": options.shards}

    def generated(**where: Any) -> None:
        generate(name, directory / name, **amount, force=True, **where)

    print(f"generate {name}, {options.operations:,} operations in {options.shards} shards")
    on("local[2]")
    with get_context("spawn").Pool(PROCESSES) as pool:
        plain_generate(
            pool, Plan.of(name, operations=10_000, shards=4), directory / "plain"
        )  # load the compiled code
        contenders = {
            PLAIN: lambda: plain_generate(pool, plan, directory / "plain"),
            THREADS: generated,
            SPARK: lambda: generated(session=on("local[2]")),
        }
        rounds(options.rounds, contenders, options.operations, PLAIN, "operations")


def made_trace(
    on: Callable[[str], Any], directory: Path, options: argparse.Namespace, name: str
) -> Trace:
    path = directory / name
    if not path.exists():
        generate(name, path, operations=options.operations, shards=options.shards)
    return open_trace(path)


def bench_replay(on: Callable[[str], Any], directory: Path, options: argparse.Namespace) -> None:
    for name in WORKLOADS:
        replay_one(on, directory, options, made_trace(on, directory, options, name))


def replay_one(
    on: Callable[[str], Any], directory: Path, options: argparse.Namespace, trace: Trace
) -> None:
    timers, out = options.timers, directory / "replayed"

    def replayed(expiries: bool, **where: Any) -> None:
        replay_trace(trace.path, timers, out, expiries=expiries, **where)

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
    seconds = []
    for master in ("local[1]", "local[2]"):
        on(master)
        samples = []
        for _ in range(options.rounds):
            clean()
            samples.append(timed(lambda master=master: replayed(False, session=on(master))))
        seconds.append(median(samples))
    clean()
    print(f"  local[1] to local[2], summaries only: {seconds[0] / seconds[1]:.2f}")


def bench_verify(on: Callable[[str], Any], directory: Path, options: argparse.Namespace) -> None:
    for name in WORKLOADS:
        verify_one(on, directory, options, made_trace(on, directory, options, name))


def verify_one(
    on: Callable[[str], Any], directory: Path, options: argparse.Namespace, trace: Trace
) -> None:
    out = directory / "to-verify"
    shutil.rmtree(out, ignore_errors=True)
    replay_trace(trace.path, TIMERS[:1], out)
    timers = trace.totals["starts"] + trace.totals["arms"] + trace.totals["rearms"]
    print(f"verify {trace.path.name}, {timers:,} timers armed, {TIMERS[0]}")
    contenders = {
        "SQL": lambda: verify(out, method="sql", session=on("local[2]")),
        f"compiled, {SPARK}": lambda: verify(out, session=on("local[2]")),
        f"compiled, {THREADS}": lambda: verify(out),
    }
    rounds(options.rounds, contenders, timers, "SQL", "timers")


def bench_ingest(on: Callable[[str], Any], directory: Path, options: argparse.Namespace) -> None:
    log = directory / "requests.csv"
    rng = random.Random(0)
    with log.open("w") as file:
        file.write("ts,uid,client,method,path,status,rtt\n")
        for row in range(CSV_ROWS):
            file.write(
                f"{1_700_000_000 + row / 1000 + rng.random():.6f},C{row:012d},"
                f"10.0.{row % 250}.{row % 199},GET,/item/{row % 9973},200,"
                f"{rng.random() * 0.3:.6f}\n"
            )
    print(
        f"ingest CSV, {CSV_ROWS:,} rows of {log.stat().st_size // CSV_ROWS} bytes,"
        f" {INGEST_SHARDS} shards"
    )

    def ingest() -> Any:
        settings = Options("ts", unit="us", shards=INGEST_SHARDS, force=True)
        return ingest_requests(
            log,
            directory / "ingested",
            settings,
            duration="rtt",
            timeout="200ms",
            session=on("local[2]"),
        )

    on("local[2]")
    rounds(options.rounds, {"local[2]": ingest}, CSV_ROWS, "local[2]", "rows")


def resident() -> int:
    """Bytes that this process and its descendants hold in memory (Linux).

    Shared pages are counted for each process.
    """
    pages, parents = {}, {}
    for directory in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            pid = int(directory.name)
            parents[pid] = int((directory / "stat").read_text().rpartition(")")[2].split()[1])
            pages[pid] = int((directory / "statm").read_text().split()[1])
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(pages.get(pid, 0) for pid in ours) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def peak_memory() -> Iterator[None]:
    """Print the most that was resident while the block ran, sampled every half second."""
    most, ended = resident(), threading.Event()

    def watch() -> None:
        nonlocal most
        while not ended.wait(0.5):
            most = max(most, resident())

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()
        print(f"  most memory, all processes together: {most / 2**30:.2f} GiB")


def bench_large(on: Callable[[str], Any], directory: Path, options: argparse.Namespace) -> None:
    """Generate, replay and sum up a trace once that is much larger than the memory needed."""
    print(
        f"{LARGE}, {options.operations:,} operations in {options.shards} shards x {', '.join(GRID)}"
    )
    amount = {"operations": options.operations, "shards": options.shards}
    trace, out = directory / "large", directory / "large-replayed"
    replayed = options.operations * len(GRID)
    steps = {
        "generate": (options.operations, lambda: generate(LARGE, trace, **amount)),
        "replay, every expiry written": (replayed, lambda: replay_trace(trace, GRID, out)),
        "summarise": (replayed, lambda: print(text_of(summarise(out).to_pylist()))),
    }
    for name, (operations, step) in steps.items():
        with peak_memory():
            seconds = timed(step)
            print(f"  {name:<44}{operations / seconds / 1e6:8.2f} M operations/s, {seconds:.0f} s")
    for name in (trace, out):
        size = sum(file.stat().st_size for file in name.rglob("*.parquet"))
        print(f"  {name.name}: {size / 2**30:.2f} GiB")


STAGES = {
    "generate": bench_generate,
    "replay": bench_replay,
    "ingest": bench_ingest,
    "verify": bench_verify,
}
ALL = STAGES | {"large": bench_large}


def main() -> None:
    parser = argparse.ArgumentParser(prog="nox -s pipeline --", description=__doc__.splitlines()[0])
    parser.add_argument(
        "stages",
        nargs="*",
        metavar="STAGE",
        help=f"some of {', '.join(ALL)}; all but large, if none is named",
    )
    parser.add_argument("--operations", type=count, default=50_000_000)
    parser.add_argument("--shards", type=count, default=64)
    parser.add_argument("--rounds", type=count, default=3)
    parser.add_argument(
        "--timers", type=lambda text: text.split(","), default=list(TIMERS), help="of replay"
    )
    parser.add_argument(
        "--directory", type=Path, help="where the files go (default: a temporary directory)"
    )
    options = parser.parse_args()
    if unknown := set(options.stages) - ALL.keys():
        parser.error(f"no stage is called {sorted(unknown)[0]!r}; there are {', '.join(ALL)}")
    print(
        "throughput, and the ratio to the first one in the same round: median (least .. greatest)"
    )
    with tempfile.TemporaryDirectory(dir=options.directory) as directory, sessions() as on:
        for stage in options.stages or STAGES:
            ALL[stage](on, Path(directory), options)


if __name__ == "__main__":
    main()
