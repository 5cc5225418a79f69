"""`wheelwork timers`: the registry with its traits."""

import argparse
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from timers.traits import Traits

WIDTH = 80
_COLUMNS = (20, 26, 16)  # of the table; the last takes what is left

_DESCRIPTION = """\
List the timers with what is declared about each: when it fires, what it costs,
what it suits. With names, all that is declared about these."""


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "timers",
        help="list the timers and their traits",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="a timer, or module:Class of your own (default: all)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print a list of JSON objects with all traits instead"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the traits of the timers named, or of all."""
    from compare.bench.contestant import contestant
    from timers.registry import names

    found = [contestant(name) for name in arguments.names or names()]
    if arguments.json:
        import json

        from compare.bench.store import traits_of

        print(
            json.dumps(
                [traits_of(c.name, c.traits, c.parameters, c.engine) for c in found], indent=1
            )
        )
    elif arguments.names:
        print("\n\n".join(details(c.name, c.traits) for c in found))
    else:
        print(_row("TIMER", "PARAMETERS (DEFAULTS)", "FIRES", "IN ONE UNIT"))
        for c in found:
            print(summary(c.name, c.traits))
        print("\nN: pending timers; tick: the clock moves by one unit.")
        print("`wheelwork timers NAME` tells all that is declared about one.")


def summary(name: str, traits: "Traits") -> str:
    """A timer's row of the table, and below it its costs, strength and weakness."""
    order = "first armed, first" if traits.order == "fifo" else "any order"
    lines = [_row(name, _defaults(traits), _fires(traits), order)]
    costs: dict[str, list[str]] = {}
    for cost in traits.costs:
        operation, shape = str(cost).split(": ")
        costs.setdefault(operation, []).append(shape)
    entries = {
        "costs": "; ".join(
            f"{operation} {', '.join(shapes)}" for operation, shapes in costs.items()
        ),
        "suits": traits.suits,
        "but": traits.drawback,
    }
    return "\n".join(lines + [_entry(word, text, 2) for word, text in entries.items()])


def details(name: str, traits: "Traits") -> str:
    """All that is declared about one timer."""
    entries: list[tuple[str, str]] = [
        ("scheme", traits.scheme),
        ("summary", traits.summary),
        ("parameters", _defaults(traits)),
        ("fires", f"{_fires(traits)}: {traits.rounding(traits.defaults)}"),
        ("same unit", "first armed, first delivered" if traits.order == "fifo" else "any order"),
        ("next_expiry", "exact" if traits.exact_next_expiry else "a lower bound"),
        *(("cost", f"{cost}; {cost.workload}; counted by {cost.counter}") for cost in traits.costs),
        ("horizon", traits.horizon),
        ("jumps", traits.jumps),
        ("suits", traits.suits),
        ("drawback", traits.drawback),
        *(("deviation", deviation) for deviation in traits.deviations),
        ("source", traits.source),
    ]
    return "\n".join([name, *_entries(entries)])


def _entries(entries: list[tuple[str, str]]) -> Iterable[str]:
    before = ""
    for word, text in entries:
        yield _entry("" if word == before else word, text, 4)
        before = word


def _entry(word: str, text: str, indent: int) -> str:
    start = f"{'':{indent}}{word:<{12 if indent > 2 else 6}}"
    return textwrap.fill(text, WIDTH, initial_indent=start, subsequent_indent=" " * len(start))


def _row(*cells: str) -> str:
    return "".join(
        [*(f"{cell:<{width}}" for cell, width in zip(cells, _COLUMNS, strict=False)), cells[-1]]
    )


def _defaults(traits: "Traits") -> str:
    return (
        ", ".join(f"{name.replace('_', '-')} {value}" for name, value in traits.defaults.items())
        or "-"
    )


def _fires(traits: "Traits") -> str:
    rounding = traits.rounding(traits.defaults)
    lowest, highest = rounding.bounds()
    if not rounding.exact:
        return f"{-lowest} early to {highest} late" if lowest else f"0 to {highest} late"
    coarser = {name: value + (name == "tick") for name, value in traits.defaults.items()}
    return "exact" if traits.rounding(coarser).exact else f"exact at tick {traits.defaults['tick']}"
