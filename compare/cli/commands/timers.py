"""`wheelwork timers`: list the registered timers with their traits."""

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from compare.cli import options
from compare.cli.text import labelled
from compare.trial.replay.lateness import lateness_text

if TYPE_CHECKING:
    from timers.traits import Traits


@options.command()
@click.argument("names", nargs=-1, type=options.TIMER, metavar="[NAME]...")
@options.json
def timers(names: tuple[str, ...], as_json: bool) -> None:
    """List the timers: when each fires, what it costs and what it suits.

    With NAMEs, print everything declared about these timers. A NAME is a
    registered timer, or module:Class for your own.
    """
    from compare.trial.replay.contestant import contestant
    from compare.trial.results.store import contestant_entry
    from timers.registry import names as registered

    contestants = [contestant(name) for name in names or registered()]
    if as_json:
        entries = [contestant_entry(timer, ["unit"]) for timer in contestants]
        click.echo(json.dumps(entries, indent=1))
    elif names:
        click.echo("\n\n".join(details(timer.name, timer.traits) for timer in contestants))
    else:
        click.echo(_row("TIMER", "PARAMETERS (DEFAULTS)", "FIRES", "WITHIN A UNIT"))
        for timer in contestants:
            click.echo(summary(timer.name, timer.traits))
        click.echo("\nN: pending timers; tick: an advance of the clock by one tick.")
        click.echo("Run `wheelwork timers NAME` for everything declared about a timer.")


def summary(name: str, traits: "Traits") -> str:
    """A timer's row of the table, followed by its costs, strength and weakness."""
    lines = [_row(name, defaults_text(traits), fires_text(traits), traits.order_text)]
    costs: dict[str, dict[str, None]] = {}  # operation -> each of its costs once
    for cost in traits.costs:
        operation, shape = str(cost).split(": ")
        costs.setdefault(operation, {})[shape] = None
    entries = {
        "costs": "; ".join(f"{name} {' or '.join(shapes)}" for name, shapes in costs.items()),
        "suits": traits.suits,
        "but": traits.drawback,
    }
    return "\n".join(lines + [labelled(*pair, indent=2, width=6) for pair in entries.items()])


def details(name: str, traits: "Traits") -> str:
    """Format everything declared about one timer."""
    entries: list[tuple[str, str]] = [
        ("scheme", traits.scheme),
        ("summary", traits.summary),
        ("parameters", defaults_text(traits)),
        ("fires", f"{fires_text(traits)}: {traits.rounding(traits.defaults)}"),
        ("same unit", traits.order_text),
        ("next_expiry", "exact" if traits.exact_next_expiry else "a lower bound"),
        *(("cost", f"{cost}; {cost.load}; adds to {cost.counter}") for cost in traits.costs),
        ("horizon", traits.horizon),
        ("jumps", traits.jumps),
        ("suits", traits.suits),
        ("drawback", traits.drawback),
        *(("deviation", deviation) for deviation in traits.deviations),
        ("source", traits.source),
    ]
    lines = [name]
    for (previous, _), (label, text) in pairwise([("", ""), *entries]):
        lines.append(labelled("" if label == previous else label, text, indent=4))
    return "\n".join(lines)


def _row(name: str, parameters: str, fires: str, order: str) -> str:
    return f"{name:<20}{parameters:<26}{fires:<16}{order}"


def defaults_text(traits: "Traits") -> str:
    """Format the parameters with their defaults: "tick 100, wheel-size 512"."""
    settings = (f"{name.replace('_', '-')} {value}" for name, value in traits.defaults.items())
    return ", ".join(settings) or "-"


def fires_text(traits: "Traits") -> str:
    """The lateness of a timer with the default parameters: "exact", "up to 100 late"."""
    rounding = traits.rounding(traits.defaults)
    if not rounding.exact:
        return lateness_text(*rounding.bounds())
    coarser = {name: value + (name == "tick") for name, value in traits.defaults.items()}
    return "exact" if traits.rounding(coarser).exact else f"exact at tick {traits.defaults['tick']}"
