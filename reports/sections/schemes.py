"""What is declared about each scheme: its traits."""

from reports.sections.parts import Entry, Section, Table, texts
from reports.summary import Contestant, Summary


def section(summary: Summary) -> Section:
    """The traits of all contestants."""
    checked = "" if summary.of_shards else "Every expiry is checked before anything is timed. "
    return Section(
        "schemes",
        "Schemes",
        "The schemes",
        lead=f"What each scheme declares about itself. {checked}"
        "The tests check the counted work against the declared costs.",
        tables=[behaviour(summary), advice(summary)],
    )


def behaviour(summary: Summary) -> Table:
    """The traits that say what a scheme does."""
    return Table(
        "behaviour",
        "What each scheme does",
        ["scheme", "fires at", "order within one unit", "horizon", "over empty time", "deviations"],
        {who: _behaviour(who) for who in summary.contestants},
    )


def _behaviour(who: Contestant) -> list[Entry]:
    traits = who.traits
    shown = {**who.parameters, **({"tick": traits["tick"]} if traits.get("tick") else {})}
    parameters = (f"{name.replace('_', ' ')} {value}" for name, value in shown.items())
    fires = str(traits["due_at"])
    return [
        Entry(traits["scheme"], ", ".join(parameters), number=False),
        *texts(
            fires if who.exact else f"{fires}. Here: {who.precision}.",
            {"fifo": "first armed, first fired"}.get(traits["order"], traits["order"]),
            traits["horizon"],
            traits["jumps"],
            "; ".join(traits["deviations"]) or "none",
        ),
    ]


def advice(summary: Summary) -> Table:
    """The traits that say what a scheme costs and is good for."""
    return Table(
        "advice",
        "What each scheme costs and suits",
        ["declared costs", "suits", "drawback", "next expiry", "source"],
        {
            who: texts(
                "; ".join(who.traits["costs"]),
                who.traits["suits"],
                who.traits["drawback"],
                "exact" if who.traits["exact_next_expiry"] else "a bound that may be earlier",
                who.traits["source"],
            )
            for who in summary.contestants
        },
    )
