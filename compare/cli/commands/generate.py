"""`wheelwork generate`: a workload as a trace on disk."""

import argparse
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from compare.arguments import count, integer

if TYPE_CHECKING:
    from compare.tapes.trace import Trace
    from compare.workloads.catalogue import Plan

_DESCRIPTION = """\
Write a workload as a trace: the same rows for the same seed on every machine.

With --shards the timers or operations are divided evenly, and the shards are
written side by side, on Spark. A shard is the traffic of one timer at the
workload's whole rate: 64 shards are the traffic of 64 machines."""

_EXAMPLE = """\
example:
  wheelwork generate keepalive --timers 1e5 --out keepalive.trace
  wheelwork generate lognormal-low --operations 1e6 --set timeout=500000 \\
      --out slow.trace
  wheelwork generate uniform --operations 1e9 --shards 64 --out big.trace"""


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "generate",
        help="write a workload as a trace",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "name", nargs="?", metavar="WORKLOAD", help="its name; without it, all are listed"
    )
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument(
        "--timers", type=count, metavar="N", help="requests, connections, ...: N, with all they do"
    )
    amount.add_argument("--operations", type=count, metavar="N", help="the first N operations")
    parser.add_argument(
        "--shards", type=count, default=1, metavar="N", help="files to divide it into (default: 1)"
    )
    parser.add_argument("--seed", type=integer, default=0, metavar="S", help="from 0 (default: 0)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the workload",
    )
    parser.add_argument("--out", metavar="TRACE", help="directory to write")
    parser.add_argument("--force", action="store_true", help="replace the trace that is there")
    parser.add_argument(
        "--master",
        metavar="URL",
        help="a Spark master (default for shards: local[*], this machine)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Write the trace, or list the workloads."""
    from compare.workloads.catalogue import Plan, WorkloadError, workload_named

    if arguments.name is None:
        print(listing())
        return
    workload_named(arguments.name)
    if arguments.out is None:
        raise WorkloadError("say where the trace goes: --out TRACE")
    if arguments.timers is None and arguments.operations is None:
        raise WorkloadError("say how much: --timers N or --operations N")

    from compare.bench.contestant import parse_setting

    plan = Plan.of(
        arguments.name,
        timers=arguments.timers,
        operations=arguments.operations,
        shards=arguments.shards,
        seed=arguments.seed,
        parameters=dict(map(parse_setting, arguments.set)),
    )
    if plan.shards == 1 and arguments.master is None:
        trace = _write_here(plan, arguments.out, arguments.force)
    else:
        from compare.spark.session import require_spark

        require_spark()
        from compare.pipeline.generate import generate_plan

        trace = generate_plan(plan, arguments.out, force=arguments.force, master=arguments.master)
    print(f"{arguments.out}: {summary(trace)}")


def _write_here(plan: "Plan", out: str, force: bool) -> "Trace":
    """Write it in this process, with a progress bar on a terminal."""
    from tqdm import tqdm

    from compare.workloads.writing import write_trace_of

    total = plan.amount if plan.counted == "operations" else None
    shown = sys.stderr.isatty()
    with tqdm(
        total=total,
        unit=" rows",
        unit_scale=True,
        disable=not shown,
        leave=False,
        dynamic_ncols=True,
    ) as bar:
        return write_trace_of(plan, out, force=force, progress=bar.update)


def summary(trace: "Trace") -> str:
    """What a trace has, in a line."""
    totals, spaces = trace.totals, [shard.id_space for shard in trace.shards]
    shards = f" in {len(spaces):,} shards" if len(spaces) > 1 else ""
    each = " in a shard" if len(spaces) > 1 else ""
    return (
        f"{totals['rows']:,} operations{shards} ({totals['starts']:,} starts, {totals['cancels']:,} cancels, "
        f"{totals['arms']:,} arms) in {trace.unit}, {max(spaces):,} at once{each}"
    )


def listing() -> str:
    """The workloads with their parameters."""
    from compare.workloads.catalogue import WORKLOADS

    lines = []
    for workload in WORKLOADS.values():
        lines += [
            f"{workload.name}, in {workload.unit}",
            textwrap.fill(workload.summary, 78, initial_indent="    ", subsequent_indent="    "),
        ]
        for name, value in workload.defaults.items():
            lines.append(f"      {f'{name}={value}':<18}{workload.meaning[name]}")
    return "\n".join(lines)
