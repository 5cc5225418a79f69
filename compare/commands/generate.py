"""`escapement generate`: a workload as a trace on disk."""
import argparse
import textwrap
from typing import Any

from compare.options import count, integer

_DESCRIPTION = """\
Write a workload as a trace: the same rows for the same seed on every machine."""

_EXAMPLE = """\
example:
  escapement generate keepalive --timers 1e5 --out keepalive.trace
  escapement generate lognormal-low --operations 1e6 --set timeout=500000 \\
      --out slow.trace"""


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "generate",
        help="write a workload as a trace",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", metavar="WORKLOAD", help="its name; without it, all are listed")
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--timers", type=count, metavar="N", help="requests, connections, ...: N, with all they do")
    amount.add_argument("--operations", type=count, metavar="N", help="the first N operations")
    parser.add_argument("--seed", type=integer, default=0, metavar="S", help="from 0 (default: 0)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the workload")
    parser.add_argument("--out", metavar="TRACE", help="directory to write")
    parser.add_argument("--force", action="store_true", help="replace the trace that is there")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Write the trace, or list the workloads."""
    from compare.workloads import WorkloadError, make, workload_named

    if arguments.name is None:
        print(listing())
        return
    workload_named(arguments.name)
    if arguments.out is None:
        raise WorkloadError("say where the trace goes: --out TRACE")
    if arguments.timers is None and arguments.operations is None:
        raise WorkloadError("say how much: --timers N or --operations N")

    from compare.contestants import parse_setting
    from compare.trace import write_trace

    made = make(
        arguments.name,
        timers=arguments.timers,
        operations=arguments.operations,
        seed=arguments.seed,
        parameters=dict(map(parse_setting, arguments.set)),
    )
    trace = write_trace(arguments.out, [made.tape], unit=made.unit, source=made.source, force=arguments.force)
    totals = trace.totals
    print(
        f"{arguments.out}: {totals['rows']:,} operations ({totals['starts']:,} starts, {totals['cancels']:,} cancels, "
        f"{totals['arms']:,} arms) in {made.unit}, {made.id_space:,} at once"
    )


def listing() -> str:
    """The workloads with their parameters."""
    from compare.workloads import WORKLOADS

    lines = []
    for workload in WORKLOADS.values():
        lines += [f"{workload.name}, in {workload.unit}", textwrap.fill(workload.summary, 78, initial_indent="    ",
                                                                     subsequent_indent="    ")]  # fmt: skip
        for name, value in workload.defaults.items():
            lines.append(f"      {f'{name}={value}':<18}{workload.meaning[name]}")
    return "\n".join(lines)
