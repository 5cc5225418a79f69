"""`wheelwork replay`: one trace through one timer, or through several on Spark."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.cli.text import replays_text

if TYPE_CHECKING:
    from compare.bench.contestant import Contestant
    from compare.bench.sources import Source
    from compare.replay.outcome import Outcome


@options.command("""\b
Examples:
  wheelwork generate lognormal-low --timer-count 1e5 --out low.trace
  wheelwork replay low.trace --timer hashed-wheel --tick 1ms
  wheelwork replay low.trace --timer my_module:MyTimer --json
  wheelwork replay low.trace --out replayed \\
      --timers hierarchical-wheel,hashed-wheel/tick=0.5ms,delay-queue""")
@click.argument("trace", type=options.PLACE)
@options.option("--timer", options.TIMER, "A timer, or module:Class for your own.")
@options.option("--timers", options.TIMERS, "Several, as in hashed-wheel/tick=5ms; needs --out.")
@options.flag("--no-drain", "Stop at the last operation, with timers pending.")
@options.section(
    "With --timer",
    options.option("--tick", "TIME", "Tick, if the timer has one: 100ms, or a number of units."),
    options.option("--wheel-size", options.INTEGER, "Slots of a wheel, if the timer has one."),
    options.json,
)
@options.section(
    "With --timers",
    options.option("--out", options.Place("results"), "Directory to write."),
    options.flag("--summaries-only", "Do not keep expiries; nothing to verify then."),
    options.flag("--count", "Count the work of the timers, too, which takes time."),
    options.flag("--force", "Replace the results of another replay."),
    options.master,
)
def replay(
    trace: str, timer: str | None, timers: tuple[str, ...] | None, no_drain: bool, **given: Any
) -> None:
    """Replay TRACE, which `generate` or `ingest` wrote, through a timer.

    A first run is checked against the oracle and counts the work of the timer. A
    second run is timed, and must fire the same timers.

    With --timers and --out, replay every shard through every timer on Spark, into
    a directory of results for `verify` and `summarise`. If it is interrupted,
    rerun the command to resume.
    """
    options.refuse_both({"--timer": timer, "--timers": timers})
    if timer and "," in timer:
        raise click.UsageError(f"--timer takes one name; use --timers {timer} and --out RESULTS")
    if timers:
        _check_unused(given, ("tick", "wheel_size", "as_json"), "--timers")
        _replay_several(trace, timers, no_drain, given)
    elif timer:
        _check_unused(given, ("out", "summaries_only", "count", "force", "master"), "--timer")
        _replay_one(trace, timer, no_drain, given)
    else:
        raise click.UsageError("name a timer: --timer NAME, or --timers NAME,... with --out")


def _check_unused(given: dict[str, Any], names: tuple[str, ...], mode: str) -> None:
    for name in names:
        if given[name] not in (None, False):
            word = name.removeprefix("as_").replace("_", "-")
            parameter = name in ("tick", "wheel_size")
            hint = "; write parameters as in hashed-wheel/tick=5ms" if parameter else ""
            raise click.UsageError(f"--{word} cannot be used with {mode}{hint}")


def _replay_several(
    trace: str, timers: tuple[str, ...], no_drain: bool, given: dict[str, Any]
) -> None:
    if not given["out"]:
        raise click.UsageError("name the directory to write: --out RESULTS")
    from compare.pipeline.replay import replay_trace

    results = replay_trace(
        trace,
        timers,
        given["out"],
        expiries=not given["summaries_only"],
        drained=not no_drain,
        counting=given["count"],
        force=given["force"],
        master=given["master"],
    )
    outcomes = results.read_outcomes()
    operations, fired = (sum(outcomes[name].to_pylist()) for name in ("operations", "fired"))
    number, shards = len(results.contestants), len(results.trace.shards)
    kept = "kept" if results.manifest["expiries"] else "not kept"
    replayed = replays_text(given["out"], number, shards, operations)
    click.echo(f"{replayed}, {fired:,} expiries ({kept})")


def _replay_one(trace: str, name: str, no_drain: bool, given: dict[str, Any]) -> None:
    from compare.bench.contestant import parse_contestant
    from compare.bench.sources import checked_replay, timed_replay, trace_source
    from compare.oracle.compiled import expect
    from compare.replay.outcome import Outcome

    parameters = {"tick": given["tick"], "wheel-size": given["wheel_size"]}
    settings = [f"{word}={value}" for word, value in parameters.items() if value is not None]
    source = trace_source(trace)
    timer = parse_contestant("/".join([name, *settings]), [source.unit])
    drain = not no_drain
    outcome, seconds = Outcome(), 0.0
    for shard in range(source.shards):
        tape, id_space = source.load(shard)
        expected = expect(tape, id_space, timer.rounding, drained=drain)
        checked, digest = checked_replay(timer, tape, id_space, expected, drain=drain)
        outcome += checked
        seconds += timed_replay(timer, tape, id_space, digest, drain=drain)
    outcome = replace(outcome, seconds=seconds)
    if given["as_json"]:
        click.echo(json.dumps(outcome.as_json() | {"engine": timer.engine}, indent=1))
    else:
        click.echo(_text(timer, source, outcome))


def _text(timer: "Contestant", source: "Source", outcome: "Outcome") -> str:
    shards = f"in {source.shards} shards, " if source.shards > 1 else ""
    late = outcome.lateness
    rows = [
        ("scheduled", f"{outcome.scheduled:,}", ""),
        ("cancelled", f"{outcome.cancelled:,}", ""),
        ("rescheduled", f"{outcome.rescheduled:,}", ""),
        ("fired", f"{outcome.fired:,}", "each when the oracle expects it"),
        ("pending", f"{outcome.pending:,}", ""),
    ]
    if late.max is None:
        rows.append(("lateness", "-", "nothing fired"))
    else:
        for word in ("min", "median", "max"):
            rows.append((f"lateness, {word}", f"{getattr(late, word):,g}", source.unit))
    if outcome.counters is None:
        rows.append(("cost counters", "-", "this timer has no kernel that counts"))
    for name, value in (outcome.counters or {}).items():
        per = f"{value / max(outcome.operations, 1):.3g} per operation" if value else ""
        rows.append((name.replace("_", " "), f"{value:,}", per))
    remark = f"{timer.engine}, expiries included"
    rows.append(("ns per operation", f"{outcome.ns_per_operation:,.1f}", remark))
    lines = [f"{timer.label}: {outcome.operations:,} operations {shards}from {source.name}"]
    lines += [f"  {word:<18}{value:>16}  {remark}".rstrip() for word, value, remark in rows]
    return "\n".join(lines)
