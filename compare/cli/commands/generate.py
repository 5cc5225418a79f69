"""`wheelwork generate`: write a workload as a trace."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from compare.base.arrow import leave_out_pandas
from compare.cli import options
from compare.cli.text import labelled, operations_text

if TYPE_CHECKING:
    from compare.traffic.tapes.trace import Trace


@options.command("""\b
Examples:
  wheelwork generate keepalive --timer-count 1e5 --out keepalive.trace
  wheelwork generate lognormal-low --operations 1e6 --set timeout=500000 \\
      --out slow.trace
  wheelwork generate uniform --operations 1e9 --shards 64 --out big.trace""")
@click.argument("workload", required=False, type=options.WORKLOAD)
@options.option(
    "--timer-count",
    options.COUNT,
    "Number of requests or connections to generate.",
    field="timers",
)
@options.operations
@options.seed
@options.settings
@options.new_trace(required=False)
@options.shards
@options.master
def generate(
    workload: str | None, out: str | None, settings: tuple[tuple[str, int], ...], **given: Any
) -> None:
    """Write a workload as a trace; without WORKLOAD, list the workloads.

    The same seed produces the same rows on every machine. With --shards, the
    timers or operations are divided evenly, and the shards are written in
    parallel on all cores of this machine or, with --master, on Spark. A shard is
    the traffic of one machine at the full rate of the workload, so 64 shards are
    the traffic of 64 machines.
    """
    leave_out_pandas()
    from compare.traffic.workloads.catalogue import workload_named
    from compare.trial.pipeline.generate import generate as generate_trace

    if workload is None:
        click.echo(listing())
        return
    workload_named(workload)
    if out is None:
        raise click.UsageError("name the trace to write: --out TRACE")
    options.refuse_both({"--timer-count": given["timers"], "--operations": given["operations"]})
    if not (given["timers"] or given["operations"]):
        raise click.UsageError("specify --timer-count N or --operations N")
    trace = generate_trace(workload, out, parameters=dict(settings), **given)
    click.echo(summary(trace, course(trace)))


def summary(trace: "Trace", course: Mapping[str, str]) -> str:
    """Summarise a trace and its course."""
    number, pending = trace.totals["shards"], trace.totals["id_space"]
    several = number > 1
    entries = {
        "operations": operations_text(trace.totals),
        "times": f"in {trace.unit}",
        "pending": f"at most {pending:,} at once{' in one shard' * several}",
        **course,
        "trace": f"{trace.place}{f' in {number:,} shards' * several}",
    }
    return "\n".join(labelled(*pair) for pair in entries.items())


def course(trace: "Trace") -> dict[str, str]:
    """The course of the first shard."""
    from compare.cli.printing import plain
    from compare.spark.places import is_far
    from compare.traffic.tapes.profile import LONGEST, profile

    if is_far(trace.place):
        return {}
    first = trace.shards[0]
    if not 0 < first.rows <= LONGEST:
        return {}
    lines = profile(trace.load(0), first.id_space).lines()
    return {label: plain(text) for label, text in lines.items()}


def listing() -> str:
    """Format the workloads with their parameters."""
    from compare.traffic.workloads.catalogue import WORKLOADS

    lines = []
    for workload in WORKLOADS.values():
        lines += [f"{workload.name}, in {workload.unit}", labelled("", workload.summary, width=4)]
        for name, parameter in workload.parameters.items():
            lines.append(f"      {f'{name}={parameter.default}':<18}{parameter.meaning}")
    return "\n".join(lines)
