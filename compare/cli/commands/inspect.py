"""`wheelwork inspect`: how a log is read, and the command that reads it."""

import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from compare.cli import options
from compare.cli.text import WIDTH, labelled
from compare.traffic.logs.blocks import printable

if TYPE_CHECKING:
    from compare.traffic.logs.inspect import Inspection

_LONGEST = 24
"""Characters of a name or an example."""
_COMMANDS = {
    "requests": (("time", "time_is", "duration", "duration_unit", "end"), ("--timeout", "5s")),
    "touches": (("time", "key"), ("--idle", "30s")),
}
"""Kind of log -> what is guessed for it, and an example of the rest."""


@options.command("""\b
Example:
  wheelwork inspect access.log.gz""")
@click.argument("log", type=options.PLACE)
@options.layout
def inspect(log: str, **layout: Any) -> None:
    """Show how a log is read, and the command that turns it into a trace.

    The beginning of LOG, or of the first file of a directory or pattern, shows
    the format and the columns, with the type and the first values of each. What
    the columns are for is guessed from their names and values. The timeout of 5s
    and the idle time of 30s are examples.
    """
    from compare.traffic.logs.formats.base import Layout
    from compare.traffic.logs.inspect import inspect

    seen = inspect(log, Layout(**layout))
    for label, text in _facts(seen):
        click.echo(labelled(label, text))
    names = [_short(column.name) for column in seen.columns]
    width = max(map(len, names), default=0)
    for name, column in zip(names, seen.columns, strict=True):
        shown = ", ".join(map(_short, column.examples))
        click.echo(f"  {name:{width}}  {column.kind:8}{shown}"[:WIDTH].rstrip())
    for command in _commands(log, layout, seen.guesses):
        click.echo(f"\n{command}")


def _facts(seen: "Inspection") -> Iterator[tuple[str, str]]:
    log, guesses = seen.log, seen.guesses
    delimiter = getattr(log, "delimiter", None)
    how = [log.format, delimiter and f"separated by {delimiter!r}", log.source.compression]
    yield "format", ", ".join(filter(None, how))
    units = {"time": seen.time_format, "duration": guesses.get("duration_unit", "s")}
    for role in ("time", "duration", "end", "key"):
        unit = f" ({units[role]})" if units.get(role) else ""
        yield role, f"{_short(guesses[role])}{unit}" if role in guesses else "not found"
    yield "columns", str(len(seen.columns))
    if log.headless:
        yield "warning", "The first line looks like values; name the columns with --columns."
    if "time" not in guesses or not guesses.keys() & {"duration", "end", "key"}:
        yield "warning", "Columns were not found: name them to `wheelwork ingest`."


def _commands(log: str, layout: Mapping[str, Any], guesses: Mapping[str, str]) -> Iterator[str]:
    """The commands that read the log, in lines of at most 80 characters if that is possible."""
    given = {
        "--log-format": "" if layout["format"] == "auto" else layout["format"],
        "--delimiter": layout["delimiter"],
        "--columns": ",".join(layout["columns"]),
        "--pattern": layout["pattern"],
    }
    if log.startswith("-") and log != "-":  # as a name, not as an option
        log = f"./{log}"
    for kind, (roles, span) in _COMMANDS.items():
        named = {f"--{role.replace('_', '-')}": guesses.get(role) for role in roles}
        if named["--time"] and any(map(named.get, ("--duration", "--end", "--key"))):
            pairs = [*given.items(), *named.items(), span, ("--out", f"{kind}.trace")]
            lines = [f"wheelwork ingest {kind} {shlex.quote(log)}"]
            for text in (shlex.join((name, value)) for name, value in pairs if value):
                if len(lines[-1]) + len(text) + 3 > WIDTH:
                    lines[-1] += " \\"
                    lines.append("   ")
                lines[-1] += f" {text}"
            yield "\n".join(lines)


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
