"""`wheelwork advise`: find the best timer for a trace, and its parameters."""

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compare.base.arrow import leave_out_pandas
from compare.cli import options
from compare.cli.text import Sheet, labelled, shown

if TYPE_CHECKING:
    from compare.trial.advice.candidates import Candidate
    from compare.trial.advice.program import Program
    from compare.trial.advice.search import Advice
    from reports.noise import Noise

KINDS = ("random", "one", "few", "keepalive", "periodic")
"""The kinds of traffic, and CALLERS the callers: those of `compare.trial`, without importing it."""

CALLERS = ("compiled", "python", "batches", "system-timer", "asyncio")
DEFAULT_LATE = "10ms"
FORMATS = (".svg", ".png")
_WORTH = 0.1  # a saving that is mentioned
_CONCERN = 1.0  # ms of CPU per second; less is no reason to choose a timer
_WIDTH = 14  # of the labels


@options.command("""\b
Examples:
  wheelwork advise requests.trace
  wheelwork advise requests.trace --max-late 100ms --memory 1MB
  wheelwork advise requests.trace --objective memory --chart advice.svg
  wheelwork advise --rate 1000 --timeout 10s --cancelled 90%
  wheelwork advise --rate 5000 --timeout 60s --traffic one --caller asyncio""")
@click.argument("trace", type=options.TRACE, required=False)
@options.option(
    "--max-late",
    "TIME",
    f"How late a timer may fire. Default: {DEFAULT_LATE}, or 0 without a unit of time.",
)
@options.option("--max-early", "TIME", "How early a timer may fire.", default="0")
@options.option("--memory", options.SIZE, "Memory limit of a timer, e.g. 100MB.")
@options.option("--objective", ("cpu", "memory"), "What to minimise.", default="cpu")
@options.option("--chart", options.Place("file"), "Draw the candidates to FILE, an .svg or .png.")
@options.section(
    "Traffic without a trace",
    options.option("--rate", "N", "Timers started (or kept alive) per second."),
    options.option("--timeout", "TIME", "Their mean timeout, such as 10s."),
    options.option("--cancelled", "SHARE", "The share that is cancelled before.", default="0%"),
    options.option("--after", "TIME", "Mean time to the cancel. Default: 5% of the timeout."),
    options.option("--traffic", KINDS, "The kind of timeouts.", default=KINDS[0]),
    options.option("--step", "TIME", "How often the caller moves the clock.", default="1ms"),
    options.option("--caller", CALLERS, "Who calls the timer.", default=CALLERS[1]),
)
@options.formats
@options.master
def advise(
    trace: str | None,
    max_late: str | None,
    max_early: str,
    memory: int | None,
    objective: str,
    chart: str | None,
    as_json: bool,
    as_markdown: bool,
    master: str | None,
    **described: Any,
) -> None:
    """Find the best timer for TRACE, and its parameters.

    The beginning of TRACE is replayed through every compiled timer with many
    parameters. The better half replays twice as much, and so on; the last few are
    timed in turns. The bounds hold for the scheme of a timer, whatever the
    traffic. A large trace is sampled. With --master the search runs on Spark.

    Without a TRACE, --rate and --timeout describe the traffic. What calls cost is
    measured for every timer with its usual parameters, and added up. It takes
    about a minute.
    """
    leave_out_pandas()
    options.refuse_both({"--json": as_json, "--markdown": as_markdown})
    if (trace is None) == (described["rate"] is None):
        raise click.UsageError("give either a TRACE, or --rate and --timeout to describe traffic")
    if trace is None:
        if memory or chart or master or objective != "cpu":
            raise click.UsageError(
                "--rate goes without --memory, --objective, --chart and --master"
            )
        from compare.cli.described import advise_described

        advise_described(
            described,
            max_early=max_early,
            max_late=max_late or DEFAULT_LATE,
            as_json=as_json,
            as_markdown=as_markdown,
        )
        return
    from compare.base.files import CANNOT_WRITE, errors_as, new_file, parents
    from compare.spark.engine import engine
    from compare.traffic.tapes.trace import open_trace
    from compare.traffic.tapes.units import TAPE_UNITS
    from compare.trial.advice.candidates import AdviceError, Bounds
    from compare.trial.advice.search import advise as search

    _check_chart(chart)
    opened = open_trace(trace)
    if max_late is None:
        max_late = DEFAULT_LATE if opened.unit in TAPE_UNITS else "0"
    late = _units("--max-late", max_late, opened.unit)
    early = _units("--max-early", max_early, opened.unit)
    with engine(master) as runner:
        advice = search(opened, Bounds(late, early, memory), runner, objective)
    if as_json:
        click.echo(json.dumps(_object(advice), indent=1))
    else:
        click.echo(markdown_of(advice) if as_markdown else text_of(advice))
    if not chart:
        return
    from reports.charts.pareto import pareto_picture

    picture = pareto_picture(advice)
    data = picture.png() if chart.endswith(".png") else picture.svg().encode()
    with errors_as(AdviceError, f"{CANNOT_WRITE} {chart}"), parents(chart), new_file(chart) as file:
        file.write_bytes(data)
    if not (as_json or as_markdown):
        click.echo("\n" + labelled("chart", chart, width=_WIDTH))


def _check_chart(chart: str | None) -> None:
    """Refuse a chart that cannot be written, before a long search."""
    if chart is None:
        return
    from compare.base.files import obstacle

    if Path(chart).suffix not in FORMATS:
        raise click.UsageError(f"--chart {chart} does not end in .svg or .png")
    if problem := "it is a directory" if Path(chart).is_dir() else obstacle(Path(chart).parent):
        raise click.UsageError(f"cannot write {chart}: {problem}")


def _units(option: str, text: str, unit: str) -> int:
    """Parse a duration as whole units of a trace, rounded down, or a number of units.

    Raises UsageError.
    """
    from compare.base.arguments import integer
    from compare.traffic.tapes.units import TAPE_UNITS, parse_duration

    try:
        if text.strip() == "0":
            return 0
        if unit in TAPE_UNITS:
            units = Fraction(parse_duration(text, "ns"), parse_duration(f"1{unit}", "ns"))
            if units.denominator > 1:
                rounded = f"{option} {text} is rounded down to {int(units)} {unit}"
                click.echo(f"wheelwork: {rounded}: the trace is in whole {unit}", err=True)
            return int(units)
        number = integer(text)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None
    if number < 0:
        raise click.UsageError(f"{option} must not be negative, but is {number}")
    return number


# ---- results


def _noise(advice: "Advice") -> "Noise":
    """The noise of the times of the last round."""
    from reports.noise import noise_of
    from reports.statistics import Estimate

    return noise_of([Estimate.of(candidate.times) for candidate in advice.finalists], {})


def _object(advice: "Advice") -> dict[str, Any]:
    from compare.trial.advice.settings import python_line, settings

    def entry(candidate: "Candidate | None") -> dict[str, Any] | None:
        if candidate is None:
            return None
        late = candidate.outcome.lateness
        return {
            "timer": candidate.label,
            "allowed": candidate.allowed,
            "operations": candidate.outcome.operations,
            "ns_per_operation": candidate.cost,
            "cpu_ms_per_second": _ms_per_second(advice, candidate.cost),
            "nbytes": candidate.nbytes,
            "lateness_bounds": advice.lateness(candidate),
            "lateness": [late.min, late.median, late.max],
        }

    return {
        "trace": str(advice.trace.path),
        "unit": advice.unit,
        "noise": _noise(advice).plain(),
        "best": entry(advice.best),
        "chosen": _chosen(advice),
        "runner_up": entry(advice.runner_up),
        "python": python_line(advice.best, advice.unit),
        "settings": settings(advice),
        "front": [candidate.label for candidate in advice.front],
        "program": _measured(advice),
        "candidates": [entry(candidate) for candidate in advice.finalists + advice.dropped],
    }


def text_of(advice: "Advice") -> str:
    """Format the advice in 80 columns.

    What it is for an asyncio program, if one was recorded; noise, six lines, the Pareto front, and
    code to paste.
    """
    from compare.cli import printing

    program = [labelled(name, text, width=_WIDTH) for name, text in _program(advice).items()]
    parts = [
        *([program] if program else []),
        *([sheet.text()] for sheet in printing.noise_sheets(_noise(advice))),
        [labelled(name, text, width=_WIDTH) for name, text in _answer(advice).items()],
        [_front(advice).text()],
        [labelled("search", _search(advice), width=_WIDTH)],
        [labelled(name, text, width=_WIDTH) for name, text in _code(advice).items()],
    ]
    return "\n\n".join("\n".join(part) for part in parts)


def markdown_of(advice: "Advice") -> str:
    """Format the advice in Markdown."""
    from compare.cli import printing

    title = f"Timers for {advice.trace.path.name}"
    answer = Sheet(title, [["", "advice"], *_program(advice).items(), *_answer(advice).items()])
    code = "\n".join(f"{name}: `{text}`  " for name, text in _code(advice).items())
    search = Sheet(notes=[_search(advice)])
    sheets = [*printing.noise_sheets(_noise(advice)), answer, _front(advice), search]
    return f"{shown(sheets, as_markdown=True)}\n\n{code}"


def _measured(advice: "Advice") -> dict[str, Any] | None:
    """The program for JSON."""
    program = advice.program
    if program is None:
        return None
    return {
        "host": program.host,
        "use": program.best,
        "share_of_core": program.core,
        "timers": {name: program.share(name) for name in program.costs},
    }


def _program(advice: "Advice") -> dict[str, str]:
    """The cost of the timers of a recorded asyncio program, and the loop to use."""
    program = advice.program
    if program is None or not program.recorded:
        return {}
    from compare.base import formats
    from compare.trial.bench.callers import HOSTS

    lines = {}
    if program.core:
        taken, saved = program.share(program.host) / program.core, program.saving / program.core
        most = f"would save {formats.share(saved)}" if saved > 0 else "would save nothing"
        lines["program"] = (
            f"timers take about {formats.share(taken)} of this program's CPU time on"
            f" {program.host}'s own loop; the best structure {most}"
        )
    loops = []
    for name in program.costs:
        early = f" (up to {HOSTS[name].early} ms early)" if name not in program.rivals else ""
        loops.append(f"{name} {formats.share(program.share(name))}{early}")
    return lines | {
        "loop": _loop(program),
        "cost of loops": f"{', '.join(loops)} of a core",
    }


def _loop(program: "Program") -> str:
    """The loop to use, and why."""
    from compare.base import formats
    from compare.trial.advice.choice import ENOUGH
    from compare.trial.bench.callers import HOSTS

    saving = f"{formats.share(program.saving)} of a core"
    if program.keeps:
        use = f"use {program.host}'s own" if program.on_a_wheel else f"keep {program.host}"
        if program.cheapest == program.host:
            return f"{use}: no other is cheaper"
        few = f"less than {ENOUGH:.0%} of a core" if program.is_small else "less than the noise"
        return f"{use}: {program.cheapest} would save {saving}, which is {few}"
    kept = program.share(program.host) - program.share(program.best)
    best = program.best if program.best in HOSTS else f"wheel_event_loop with {program.best}"
    return f"{best}: it saves {formats.share(kept)} of a core against {program.host}'s own"


def _answer(advice: "Advice") -> dict[str, str]:
    """The advice in words."""
    best = advice.best
    cost = f"{best.cost:,.1f} ns of CPU per operation"
    if ms := _ms_per_second(advice, best.cost):
        spent = f"{ms:.3g} ms" if ms >= 0.001 else f"{ms * 1e6:.3g} ns"
        cost = f"{spent} of CPU per second of this traffic; {cost}"
    return {
        "use": best.label,
        "cost": f"{cost}; {_bytes(best.nbytes)}",
        "lateness": _lateness(advice),
        "chosen": _chosen(advice),
        "runner-up": _runner_up(advice),
        "would change": _change(advice),
    }


def _code(advice: "Advice") -> dict[str, str]:
    """Code to paste."""
    from compare.trial.advice.settings import python_line, settings

    unit = advice.unit
    return {f"Python [{unit}]": python_line(advice.best, unit), **settings(advice)}


def _ms_per_second(advice: "Advice", ns: float) -> float | None:
    """Milliseconds of CPU per second of the trace; None if its time is not in seconds."""
    from compare.traffic.tapes.units import EXPONENTS

    if advice.unit not in EXPONENTS or not advice.trace.span:
        return None
    seconds = advice.trace.span / float(10 ** EXPONENTS[advice.unit])
    return ns * int(advice.trace.totals["rows"]) / 1e6 / seconds


def _bytes(number: int) -> str:
    return f"{number / 1e6:,.1f} MB" if number >= 1e6 else f"{number / 1e3:,.1f} kB"


def _lateness(advice: "Advice") -> str:
    from compare.base.quantiles import QUANTILES
    from compare.traffic.tapes.units import duration_text
    from compare.trial.replay.lateness import lateness_text

    low, high = advice.lateness(advice.best)
    unit = advice.unit
    declared, late = lateness_text(low, high, unit), advice.best.outcome.lateness
    if low == high == 0:
        return f"{declared}: every timer fires at its deadline"
    if late.max is None:
        return f"{declared} by its scheme; nothing fired here"
    shares = (QUANTILES[name] for name in ("p50", "p99"))
    median, high = (value or 0 for value in late.quantiles(shares))
    texts = (duration_text(value, unit) for value in (median, high, late.max))
    return "{} by its scheme; here p50 {}, p99 {}, at most {}".format(declared, *texts)


def _chosen(advice: "Advice") -> str:
    """The rule that decided, and what it costs."""
    from compare.trial.advice.choice import ENOUGH

    if advice.objective == "memory":
        return "the smallest within the bounds"
    best, choice = advice.best, advice.choice
    if not choice.reasons:
        return "the cheapest within the bounds"
    cheapest = advice.ranked[choice.cheapest]
    about = f"within the noise or {ENOUGH:.0%} of a core"
    saved = 1 - cheapest.cost / best.cost
    return f"{choice.text} ({about}); {cheapest.label} takes {saved:.0%} less CPU"


def _runner_up(advice: "Advice") -> str:
    best, other = advice.best, advice.runner_up
    if other is None:
        return "none: no other scheme keeps the bounds"
    more = other.cost / best.cost - 1
    noise = max(best.noise, other.noise)
    compared = f"{abs(more):.0%} {'more' if more >= 0 else 'less'} CPU (noise {noise:.0%})"
    if abs(more) <= noise:
        compared += ", which is within the noise"
    return f"{other.label}: {compared}; {_bytes(other.nbytes)}"


def _change(advice: "Advice") -> str:
    from compare.trial.replay.lateness import lateness_text

    best, other = advice.best, advice.looser
    texts = []
    if (_ms_per_second(advice, best.cost) or _CONCERN) < _CONCERN:
        texts.append("CPU time does not matter at this rate")
    if other and (saved := 1 - other.cost / best.cost) >= _WORTH:
        bounds = lateness_text(*advice.lateness(other), advice.unit)
        text = f"firing {bounds}, {other.label} takes {saved:.0%} less CPU"
        if more := other.outcome.fired - best.outcome.fired:
            text += f", but {abs(more):,} {'more' if more > 0 else 'fewer'} timers fire"
        texts.append(text)
    smallest = min(advice.ranked, key=lambda candidate: candidate.nbytes)
    if smallest.nbytes < (1 - _WORTH) * best.nbytes:
        texts.append(f"to save memory, {smallest.label} takes {_bytes(smallest.nbytes)}")
    return "; ".join(texts) or "no looser bound saves a tenth of the CPU time or memory"


def _front(advice: "Advice") -> Sheet:
    """The Pareto front as a table, with the advice if that is not on it."""
    from compare.traffic.tapes.units import duration_text

    rows = [["Pareto front", "ns", "precision", "memory", "bounds"]]
    listed = {candidate.label: candidate for candidate in [*advice.front, advice.best]}.values()
    for candidate in sorted(listed, key=lambda candidate: candidate.cost):
        precision = (
            duration_text(candidate.deviation, advice.unit) if candidate.deviation else "exact"
        )
        kept = "advice" if candidate == advice.best else "kept" if candidate.allowed else "-"
        cost = candidate.cost
        ns = f"{cost:.1f}" if cost < 100 else f"{cost:,.0f}"
        rows.append([candidate.label, ns, precision, _bytes(candidate.nbytes), kept])
    return Sheet(rows=rows)


def _search(advice: "Advice") -> str:
    (number, operations), *later = advice.rounds
    first = f"{number} candidates on {operations:,} operations"
    rounds = [first, *(f"{number} on {operations:,}" for number, operations in later)]
    return f"{', '.join(rounds)} in {len(advice.best.times)} turns"
