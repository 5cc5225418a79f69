"""What a comparison is asked to do: the same options for `compare`, `report` and Python. Cheap to
import.

>>> from compare.bench.comparison import Comparison, run_comparison
>>> run = run_comparison(Comparison(timers=("delay-queue",), sizes=(100,), repeats=1))  # doctest: +SKIP
"""

import argparse
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from compare.arguments import count, counts, integer, seconds, words

DEFAULT_SIZES = (1_000, 10_000, 100_000, 1_000_000)
DEFAULT_WORKLOADS = ("lognormal-low", "lognormal-high", "keepalive", "cancel-heavy")


@dataclass(frozen=True)
class Comparison:
    """What to compare. The defaults are those of the command line."""

    traces: tuple[str, ...] = ()  # directories
    workloads: tuple[str, ...] | None = (
        None  # names; None: the default ones, or none where there are traces
    )
    timers: tuple[
        str, ...
    ] = ()  # NAME[/parameter=value...] or module:Class; empty: all that are registered
    sizes: tuple[int, ...] = DEFAULT_SIZES  # pending timers; empty: only sources
    operations: int = 100_000  # of each workload
    repeats: int = 5  # at most; fewer for what takes long
    budget: float = 1.5  # seconds for one repeat; what would take longer is predicted instead
    seed: int = 0
    runs: str = "runs"  # the store
    command: tuple[str, ...] = field(default=("run_comparison",))  # for the manifest


def add_options(parser: argparse.ArgumentParser, *, store: str = "--out") -> None:
    """The options of a comparison; `store` is what the one for the directory of runs is called."""
    default = Comparison()
    parser.add_argument(
        "--workload",
        action="append",
        metavar="NAME",
        help="a workload to replay; may be repeated "
        f"(default: {', '.join(DEFAULT_WORKLOADS)}, unless a trace is given)",
    )
    parser.add_argument(
        "--timers",
        type=words,
        default=(),
        metavar="A,B",
        help="timers to compare, each NAME, "
        "NAME/tick=5/wheel-size=64 or module:Class (default: all that are registered)",
    )
    parser.add_argument(
        "--sizes",
        type=counts,
        default=default.sizes,
        metavar="N,M",
        help="numbers of pending timers (default: 1e3,1e4,1e5,1e6)",
    )
    parser.add_argument(
        "--operations",
        type=count,
        default=default.operations,
        metavar="N",
        help="operations of each workload (default: 1e5)",
    )
    parser.add_argument(
        "--repeats",
        type=count,
        default=default.repeats,
        metavar="K",
        help="samples of each time, at most (default: 5); fewer of what takes long",
    )
    parser.add_argument(
        "--budget",
        type=seconds,
        default=default.budget,
        metavar="SECONDS",
        help="what would take longer once is predicted, not run (default: 2)",
    )
    parser.add_argument(
        "--seed", type=integer, default=default.seed, metavar="S", help="from 0 (default: 0)"
    )
    parser.add_argument(
        store,
        dest="runs",
        default=default.runs,
        metavar="RUNS",
        help="directory in which the run is stored (default: runs)",
    )


def options_from(
    arguments: argparse.Namespace, traces: Iterable[str | os.PathLike[str]] = ()
) -> Comparison:
    """The comparison that parsed options ask for, with these traces."""
    return Comparison(
        traces=tuple(os.fspath(trace) for trace in traces),
        workloads=None if arguments.workload is None else tuple(arguments.workload),
        timers=arguments.timers,
        sizes=arguments.sizes,
        operations=arguments.operations,
        repeats=arguments.repeats,
        budget=arguments.budget,
        seed=arguments.seed,
        runs=arguments.runs,
        command=tuple(getattr(arguments, "command_line", ())),
    )


def workloads_of(options: Comparison) -> tuple[str, ...]:
    """The workloads that are replayed: those given, or the default ones where nothing is given."""
    if options.workloads is not None:
        return options.workloads
    return () if options.traces else DEFAULT_WORKLOADS


def run_comparison(options: Comparison) -> Path:
    """Measure, replay, store; returns the stored run's path. A progress bar runs where stderr is a
    terminal.

    Everything given is checked before anything is measured, and nothing is stored of a comparison
    that fails. Raises TimerError: ComparisonError, UnknownTimerError, ParameterError, TraceError,
    WorkloadError, RunError, and AgreementError for a timer that does not do what its traits
    declare.
    """
    # Brings Numba and Arrow, for which a command line that only asks for help need not wait.
    from compare.bench.run import hold

    return hold(options)
