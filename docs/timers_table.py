"""Update the README's table of timers from their traits: `python docs/timers_table.py`."""

import re
from pathlib import Path

from compare.cli.commands.timers import fires_text
from timers.registry import names, timer_class

README = Path(__file__).parents[1] / "README.md"
HEADING = "| class | scheme | fires | equal deadlines | parameters |\n|---|---|---|---|---|\n"


def row(name: str) -> str:
    """The row of a registered timer, with its default parameters."""
    cls = timer_class(name)
    parameters = ", ".join(f"`{key}` ({value})" for key, value in cls.traits.defaults.items())
    fires = fires_text(cls.traits), cls.traits.order_text
    cells = f"`{cls.__name__}`", cls.traits.scheme, *fires, parameters or "-"
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    table = HEADING + "".join(map(row, names()))
    pattern = re.compile(re.escape(HEADING) + r"(?:\|.*\n)*")
    README.write_text(pattern.sub(lambda _: table, README.read_text()))
