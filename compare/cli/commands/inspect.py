"""`wheelwork inspect`: show how a log is read and the command to read it, or describe a trace."""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from compare.cli import options
from compare.cli.text import WIDTH, labelled, trace_facts

if TYPE_CHECKING:
    from compare.traffic.logs.inspect import Inspection
    from compare.traffic.tapes.trace import Trace

_LONGEST = 24
"""Characters of a name or an example."""


class Guess(NamedTuple):
    """The options of `ingest` for a kind of log."""

    options: tuple[str, ...]  # those that are guessed
    needed: str  # the column besides the time; requests may have an end instead
    delay: str  # the option for the time until a timer fires
    example: str  # a value of that option

    def among(self, guesses: Mapping[str, str]) -> dict[str, str]:
        """The guessed options for this kind."""
        return {name: guesses[name] for name in self.options if name in guesses}

    def is_complete(self, guesses: Mapping[str, str]) -> bool:
        """Whether both columns are known."""
        return "time" in guesses and bool({self.needed, "end", "id"} & guesses.keys())


GUESSES = {
    "requests": Guess(
        (
            *(
                "time",
                "time_format",
                "year",
                "time_zone",
                "time_is",
                "duration",
                "duration_unit",
                "end",
            ),
            *("id", "event", "starts", "ends", "where", "unit"),
        ),
        "duration",
        "timeout",
        "5s",
    ),
    "touches": Guess(
        ("time", "time_format", "year", "time_zone", "key", "unit"), "key", "idle", "30s"
    ),
}


@options.command("""\b
Example:
  wheelwork inspect access.log.gz""")
@click.argument("log", type=options.PLACE)
@options.layout
@options.json
def inspect(log: str, as_json: bool, **layout: Any) -> None:
    """Show how a log is read, and the command that turns it into a trace.

    If LOG is a trace, its operations, rates and delays are shown instead.

    The beginning of LOG, or of the first file of a directory or pattern, shows
    the format and the columns, with the type and the first values of each. A
    known format defines what its columns mean and their units; otherwise both
    are guessed from names and values. If two units fit, there is a command for
    each. The timeout of 5s and the idle time of 30s are examples.
    """
    from compare.base.files import MANIFEST, has_format
    from compare.traffic.logs.formats.base import Layout
    from compare.traffic.logs.inspect import inspect
    from compare.traffic.tapes.trace import FORMAT, open_trace

    if has_format(Path(log, MANIFEST), FORMAT):
        trace = open_trace(log)
        if as_json:
            click.echo(json.dumps(_trace_object(trace), indent=1))
        else:
            click.echo("\n".join(labelled(*pair) for pair in trace_facts(trace)))
        return

    seen = inspect(log, Layout(**layout))
    if as_json:
        click.echo(json.dumps(_object(log, seen), indent=1))
        return
    for label, text in _facts(seen):
        click.echo(labelled(label, text))
    names = [_short(column.name) for column in seen.columns]
    width = max(map(len, names), default=0)
    for name, column in zip(names, seen.columns, strict=True):
        line, separator = f"  {name:{width}}  {column.kind:8}", ""
        for example in map(_short, column.examples):
            if len(line) + len(separator) + len(example) > WIDTH:
                break
            line, separator = f"{line}{separator}{example}", ", "
        click.echo(line.rstrip())
    for command in _commands(log, seen):
        click.echo(f"\n{command}")


def _trace_object(trace: "Trace") -> dict[str, Any]:
    from compare.traffic.tapes.tape import OP_COUNTS

    return {
        "trace": str(trace.path),
        "unit": trace.unit,
        "shards": trace.totals["shards"],
        "span": trace.span,
        "operations": {name: trace.totals[name] for name in ("rows", *OP_COUNTS)},
        "source": trace.source,
        "description": asdict(trace.description),
    }


def _object(log: str, seen: "Inspection") -> dict[str, Any]:
    commands = _commands(log, seen)
    return {
        "log": log,
        "format": seen.log.format,
        "delimiter": getattr(seen.log, "delimiter", None),
        "compression": seen.log.source.compression or None,
        "encoding": seen.log.source.encoding,
        "envelope": seen.log.source.envelope or None,
        "headless": seen.log.headless,
        "time_format": seen.time_format,
        "guesses": dict(seen.guesses),
        "known": seen.known and {"name": seen.known.name, "source": seen.known.source},
        "units": list(seen.units),
        "warnings": list(seen.warnings),
        "columns": [
            {"name": column.name, "kind": column.kind, "examples": list(column.examples)}
            for column in seen.columns
        ],
        "commands": [command.replace(" \\\n   ", "") for command in commands],
    }


def _facts(seen: "Inspection") -> Iterator[tuple[str, str]]:
    log, guesses = seen.log, seen.guesses
    delimiter = getattr(log, "delimiter", None)
    source = log.source
    how = [
        log.format,
        "made from the lines" if seen.made else "",
        delimiter and f"separated by {delimiter!r}",
        source.envelope and f"in lines of {source.envelope}",
        source.encoding if source.encoding != "utf-8" else "",
        source.compression,
    ]
    yield "format", ", ".join(filter(None, how))
    if seen.known is not None:
        yield "known as", seen.known.name
    for role in ("time", "duration", "end", "id", "key"):
        if role not in guesses:
            if role == "duration" and seen.told is not None:
                found = seen.told.guesses[role]
                words = [*_details(seen.told, role)][:1]
                yield role, f"{_short(found)} ({words[0]}), with a pattern made from the lines"
            elif role not in ("id", "duration" if "id" in guesses else "", "end"):
                yield role, "not found"
            continue
        words = [word for word in _details(seen, role) if word]
        yield role, _short(guesses[role]) + (f" ({', '.join(words)})" if words else "")
    yield "columns", str(len(seen.columns))
    if log.headless:
        yield "warning", "The first line looks like values; name the columns with --columns."
    is_complete = "time" in guesses and guesses.keys() & {"duration", "end", "id", "key"}
    if not is_complete and seen.told is None:
        yield "warning", f"Columns were not found: name them, as in {_unfinished(log.name, seen)}"
    for text in (seen.told or seen).warnings:
        yield "warning", text


def _unfinished(log: str, seen: "Inspection") -> str:
    """A command with COL in place of the columns that are not known."""
    named = {"columns": "NAMES"} if seen.log.headless else {}
    kind = "touches" if "key" in seen.guesses else "requests"
    guess = GUESSES[kind]
    columns = {"time": "COL", guess.needed: "COL"} | guess.among(seen.guesses)
    columns.pop("unit", None)
    example = {guess.delay: guess.example, "out": f"{kind}.trace"}
    return " ".join(ingest_command(kind, log, layout_options(seen) | named | columns | example))


def _details(seen: "Inspection", role: str) -> Iterator[str]:
    """How the column of a role is read."""
    guesses = seen.guesses
    if role == "time":
        yield seen.time_format or ""
        if guesses.keys() & {"duration", "end"}:
            assumed = "assumed to be " if seen.assumed else ""
            yield f"{assumed}the {guesses.get('time_is', 'start')}"
    elif role == "duration":
        yield seen.unit
    elif role == "end":
        yield seen.time_format or ""
    elif role == "id":
        yield f"from {guesses['starts']!r} to {guesses['ends']!r} in {_short(guesses['event'])}"
    yield seen.reasons.get(role, "")


def _commands(log: str, seen: "Inspection") -> Iterator[str]:
    """The commands that read the log, in lines of at most 80 characters if that is possible."""
    if seen.told is not None:
        yield from _commands(log, seen.told)
    guesses = dict(seen.guesses)
    choices = [{**guesses, "duration_unit": unit} for unit in seen.units] or [guesses]
    touches = guesses | {"unit": seen.time_unit if seen.time_unit != "ms" else ""}
    every = [("requests", some) for some in choices] + [("touches", touches)]
    for kind, some in every:
        guess = GUESSES[kind]
        found = guess.among(some)
        if guess.is_complete(found):
            example = {guess.delay: guess.example, "out": f"{kind}.trace"}
            first, *words = ingest_command(kind, log, layout_options(seen) | found | example)
            lines = [first]
            for text in words:
                if len(lines[-1]) + len(text) + 3 > WIDTH:
                    lines[-1] += " \\"
                    lines.append("   ")
                lines[-1] += f" {text}"
            yield "\n".join(lines)


def layout_options(seen: "Inspection") -> dict[str, str | None]:
    """The options of `ingest` for the format in which a log was seen."""
    layout = seen.layout
    return {
        "log_format": "" if layout.format == "auto" else layout.format,
        "delimiter": layout.delimiter,
        "columns": ",".join(layout.columns),
        "pattern": layout.pattern,
    }


def ingest_command(kind: str, log: str, given: Mapping[str, str | None]) -> list[str]:
    """The command that reads a log, followed by its options, each with its value."""
    if log.startswith("-") and log != "-":  # as a name, not as an option
        log = f"./{log}"
    pairs = ((f"--{name.replace('_', '-')}", value) for name, value in given.items() if value)
    return [f"wheelwork ingest {kind} {shlex.quote(log)}", *map(shlex.join, pairs)]


def _short(text: str) -> str:
    from compare.traffic.logs.blocks import printable

    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
