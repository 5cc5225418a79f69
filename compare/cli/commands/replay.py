"""`wheelwork replay`: replay a trace through timers."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from compare.base.arrow import leave_out_pandas
from compare.cli import options
from compare.cli.text import replays_text

if TYPE_CHECKING:
    from compare.trial.pipeline.results import Results
    from compare.trial.pipeline.verify import Verification
    from compare.trial.replay.outcome import Outcome


@options.command("""\b
Examples:
  wheelwork generate lognormal-low --timer-count 1e5 --out low.trace
  wheelwork replay low.trace --timers hashed-wheel/tick=1ms
  wheelwork replay low.trace --timers my_module:MyTimer --json
  wheelwork replay low.trace --out replayed \\
      --timers hierarchical-wheel,hashed-wheel/tick=0.5ms,delay-queue""")
@click.argument("trace", type=options.TRACE)
@options.option(
    "--timers",
    options.TIMERS,
    "Timers to replay, e.g. hashed-wheel/tick=5ms or module:Class.",
    required=True,
)
@options.option("--out", options.Place("results"), "Store the results in this directory.")
@options.flag("--force", "Replace the results of another replay.")
@options.flag("--count", "Also record cost counters (slower).", field="counting")
@options.flag("--no-drain", "Stop at the last operation, leaving timers pending.")
@options.flag("--summaries-only", "Do not store expiries; the results cannot be verified.")
@options.json
@options.master
def replay(
    trace: str,
    timers: tuple[str, ...],
    out: str | None,
    no_drain: bool,
    summaries_only: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Replay TRACE, written by `generate`, `ingest` or `record`, through timers.

    With --out, the results are stored in a directory for `verify`, `summarise` and
    `report`; if they are there already, nothing is run again. Without --out, they
    are checked against the oracle and printed; the exit code is 1 if an expiry is
    wrong or missing.

    The shards of the trace are replayed on all cores of this machine or, with
    --master, on Spark.
    """
    leave_out_pandas()
    if given["master"] and not out:
        raise click.UsageError("--master needs --out")

    from compare.cli.commands.verify import MISMATCHES
    from compare.cli.commands.verify import text_of as verification_text
    from compare.spark.engine import engine
    from compare.spark.places import is_far
    from compare.trial.pipeline.replay import replay_trace
    from compare.trial.pipeline.summarise import outcomes_of
    from compare.trial.pipeline.verify import checked

    with nullcontext("") if out else TemporaryDirectory(prefix="wheelwork-") as temporary:
        place = out or Path(temporary, "results")
        master = given.pop("master")
        # Only Spark reads the results that are there; without a session, it would have ended.
        with engine(master, places=[place]) if is_far(place) else nullcontext() as chosen:
            results = replay_trace(
                trace,
                timers,
                place,
                expiries=bool(out) and not summaries_only,
                check=not (out or summaries_only),
                drained=not no_drain,
                master=master,
                session=getattr(chosen, "session", None),
                **given,
            )
            outcomes = outcomes_of(results, chosen)
        totals = [each.outcome for each in outcomes]
        verification = None
        if results.manifest["checked"]:
            verification = replace(checked(results, outcomes), path=trace)
    if as_json:
        objects = [
            {"contestant": contestant.label, "engine": contestant.engine, **outcome.as_json()}
            for contestant, outcome in zip(results.contestants, totals, strict=True)
        ]
        click.echo(json.dumps(objects, indent=1))
    elif out:
        click.echo(_stored(results, totals))
    else:
        click.echo("\n\n".join(_texts(trace, results, totals, verification)))
    if verification and not verification.passed:
        if not as_json:
            click.echo()
        click.echo(verification_text(verification), err=as_json)
        return MISMATCHES
    return 0


def _stored(results: "Results", totals: "list[Outcome]") -> str:
    fired = sum(outcome.fired for outcome in totals)
    operations = totals[0].operations  # of the trace; every timer has replayed them all
    replayed = replays_text(results.place, len(totals), results.trace.totals["shards"], operations)
    stored = "stored" if results.manifest["expiries"] else "not stored"
    return f"{replayed}, {fired:,} expiries ({stored})"


def _texts(
    trace: str, results: "Results", totals: "list[Outcome]", verification: "Verification | None"
) -> list[str]:
    """The results of each timer, over all shards."""
    number, texts = results.trace.totals["shards"], []
    shards = f"in {number} shards, " if number > 1 else ""
    for index, (contestant, outcome) in enumerate(zip(results.contestants, totals, strict=True)):
        late, verdict = outcome.lateness, ""
        if verification and not verification.timers[index].mismatches:
            verdict = "as the oracle expects"
        rows = [
            ("scheduled", f"{outcome.scheduled:,}", ""),
            ("cancelled", f"{outcome.cancelled:,}", ""),
            ("rescheduled", f"{outcome.rescheduled:,}", ""),
            ("fired", f"{outcome.fired:,}", verdict),
            ("pending", f"{outcome.pending:,}", ""),
            ("most pending", f"{outcome.most_pending:,}", "in one shard" if number > 1 else ""),
        ]
        if late.max is None:
            rows.append(("lateness", "-", "nothing fired"))
        else:
            for name in ("min", "median", "max"):
                value = getattr(late, name)
                text = f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
                rows.append((f"lateness, {name}", text, results.trace.unit))
        for name, count in (outcome.counters or {}).items():
            rate = f"{count / max(outcome.operations, 1):.3g} per operation" if count else ""
            rows.append((name.replace("_", " "), f"{count:,}", rate))
        if outcome.operations:
            engine = f"{contestant.engine}, expiries included"
            rows.append(("ns per operation", f"{outcome.ns_per_operation:,.1f}", engine))
        lines = [f"{contestant.label}: {outcome.operations:,} operations {shards}from {trace}"]
        lines += [f"  {label:<18}{value:>16}  {remark}".rstrip() for label, value, remark in rows]
        texts.append("\n".join(lines))
    return texts
