"""`wheelwork replay`: one trace through one timer."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from compare.arguments import integer, words

if TYPE_CHECKING:
    from compare.bench.contestant import Contestant
    from compare.bench.sources import Outcome, Source

_DESCRIPTION = """\
Replay a trace through a timer. First a counting run is held against the oracle,
then another one is timed, which must fire the same timers.

With --timers and --out: replay every shard through every timer, as tasks of
Spark, into a directory of results for `verify` and `summarise`. A replay that
was interrupted goes on where it stopped when the same command is said again."""

_EXAMPLE = """\
example:
  wheelwork generate lognormal-low --timers 1e5 --out low.trace
  wheelwork replay low.trace --timer hashed-wheel --tick 1000
  wheelwork replay low.trace --timer my_module:MyTimer --json
  wheelwork replay low.trace --out replayed \\
      --timers hierarchical-wheel,hashed-wheel/tick=500,delay-queue"""


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "replay",
        help="replay a trace through a timer",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "trace", metavar="TRACE", help="directory that `generate` or `ingest` wrote"
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--timer", metavar="NAME", help="a timer, or module:Class of your own")
    which.add_argument(
        "--timers",
        type=words,
        metavar="NAME,...",
        help="several, as in hashed-wheel/tick=5; needs --out",
    )
    parser.add_argument(
        "--tick", type=integer, metavar="N", help="units of a tick, where the timer has one"
    )
    parser.add_argument(
        "--wheel-size", type=integer, metavar="N", help="slots of a wheel, where the timer has one"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object instead")
    parser.add_argument(
        "--no-drain", action="store_true", help="stop at the last operation, with timers pending"
    )
    grid = parser.add_argument_group("with --timers")
    grid.add_argument("--out", metavar="RESULTS", help="directory to write, or to go on with")
    grid.add_argument(
        "--summaries-only",
        action="store_true",
        help="do not keep what fired; nothing to verify then",
    )
    grid.add_argument(
        "--count", action="store_true", help="count the timers' work as well, which takes time"
    )
    grid.add_argument("--force", action="store_true", help="replace other results that are there")
    grid.add_argument(
        "--master", metavar="URL", help="a Spark master (default: local[*], this machine)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Replay, check, time and print; or replay a grid."""
    _check_together(arguments)
    if arguments.timers:
        _run_grid(arguments)
        return
    from compare.bench.contestant import contestant
    from compare.bench.sources import Outcome, checked_replay, timed_replay, trace_source
    from compare.oracle.compiled import expect

    given = {"tick": arguments.tick, "wheel_size": arguments.wheel_size}
    timer = contestant(
        arguments.timer, {name: value for name, value in given.items() if value is not None}
    )
    source = trace_source(arguments.trace)
    drain = not arguments.no_drain
    outcome, seconds = Outcome(), 0.0
    for shard in range(source.shards):
        tape, id_space = source.load(shard)
        expected = expect(tape, id_space, timer.rounding, drained=drain)
        done, nbytes, digest = checked_replay(timer, tape, id_space, expected, drain=drain)
        outcome.add(tape, done, nbytes)
        seconds += timed_replay(timer, tape, id_space, digest, drain=drain).seconds
    ns_per_operation = seconds * 1e9 / max(outcome.operations, 1)
    if arguments.json:
        print(json.dumps(_object(outcome, ns_per_operation, timer.engine), indent=1))
    else:
        print(_text(timer, source, outcome, ns_per_operation))


_OF_ONE = ("tick", "wheel_size", "json")
_OF_GRID = ("out", "summaries_only", "count", "force", "master")


def _check_together(arguments: argparse.Namespace) -> None:
    """Refuse options that say nothing here."""
    from compare.replay.engine import ReplayError

    mode, others = ("--timers", _OF_ONE) if arguments.timers else ("--timer", _OF_GRID)
    for name in others:
        if getattr(arguments, name) not in (None, False):
            hint = (
                "; write the parameters as in hashed-wheel/tick=5"
                if name in ("tick", "wheel_size")
                else ""
            )
            raise ReplayError(f"--{name.replace('_', '-')} does not go with {mode}{hint}")
    if arguments.timers and not arguments.out:
        raise ReplayError("say where the results go: --out RESULTS")


def _run_grid(arguments: argparse.Namespace) -> None:
    from compare.spark.session import require_spark

    require_spark()
    from compare.pipeline.replay import replay_grid

    results = replay_grid(
        arguments.trace,
        arguments.timers,
        arguments.out,
        expiries=not arguments.summaries_only,
        drained=not arguments.no_drain,
        counting=arguments.count,
        force=arguments.force,
        master=arguments.master,
    )
    cells = results.read_cells()
    operations, fired = (sum(cells[name].to_pylist()) for name in ("operations", "fired"))
    timers, shards = len(results.contestants), len(results.trace.shards)
    kept = "kept" if results.manifest["expiries"] else "not kept"
    print(
        f"{arguments.out}: {timers} timer{'s' * (timers != 1)} x {shards} shard{'s' * (shards != 1)},"
        f" {operations:,} operations, {fired:,} expiries ({kept})"
    )


def _object(outcome: "Outcome", ns_per_operation: float, engine: str) -> dict[str, Any]:
    return {
        "scheduled": outcome.scheduled,
        "cancelled": outcome.cancelled,
        "rescheduled": outcome.rescheduled,
        "fired": outcome.fired,
        "pending": outcome.pending,
        "lateness": outcome.histogram.lateness()._asdict(),
        "counters": outcome.counters,
        "ns_per_operation": round(ns_per_operation, 2),
        "engine": engine,
    }


def _text(
    timer: "Contestant", source: "Source", outcome: "Outcome", ns_per_operation: float
) -> str:
    settings = ", ".join(
        f"{name.replace('_', '-')} {value}" for name, value in timer.parameters.items()
    )
    shards = f"in {source.shards} shards, " if source.shards > 1 else ""
    late = outcome.histogram.lateness()
    rows: list[tuple[str, str, str]] = [
        ("scheduled", f"{outcome.scheduled:,}", ""),
        ("cancelled", f"{outcome.cancelled:,}", ""),
        ("rescheduled", f"{outcome.rescheduled:,}", ""),
        ("fired", f"{outcome.fired:,}", "each at the moment that the oracle expects"),
        ("pending", f"{outcome.pending:,}", ""),
    ]
    if late.max is None:
        rows.append(("lateness", "-", "nothing fired"))
    else:
        rows += [
            (f"lateness, {word}", f"{value:,g}", source.unit)
            for word, value in late._asdict().items()
        ]
    if outcome.counters is None:
        rows.append(("cost counters", "-", "it has no kernel that could count"))
    else:
        for name, value in outcome.counters.items():
            per = f"{value / max(outcome.operations, 1):.3g} per operation" if value else ""
            rows.append((name.replace("_", " "), f"{value:,}", per))
    rows.append(
        ("ns per operation", f"{ns_per_operation:,.1f}", f"{timer.engine}, expiries included")
    )
    who = f"{timer.name} ({settings})" if settings else timer.name
    lines = [f"{who}: {outcome.operations:,} operations {shards}from {source.name}"]
    lines += [f"  {word:<18}{value:>16}  {remark}".rstrip() for word, value, remark in rows]
    return "\n".join(lines)
