"""What is declared about each scheme: its traits."""

from collections.abc import Mapping
from typing import Any

from reports.sections.parts import Entry, Section, Table, plain_row, texts
from reports.summary import StoredContestant, Summary


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
        folded=True,
    )


def behaviour(summary: Summary) -> Table:
    """The traits that say what a scheme does."""
    rows = {who: plain_row(_behaviour(who)) for who in summary.contestants}
    return Table("behaviour", "What each scheme does", ("trait",), rows)


def _behaviour(who: StoredContestant) -> dict[str, Entry]:
    traits = who.traits
    shown = {**traits["defaults"], **traits["settings"]}
    if traits["tick"] is not None:
        shown["tick"] = traits["tick"]
    parameters = (f"{name.replace('_', ' ')} {value}" for name, value in shown.items())
    fires, order = str(traits["due_at"]), traits["order"]
    told = {
        "fires at": fires if who.exact else f"{fires}. Here: {who.precision}.",
        "order within one unit": "first armed, first fired" if order == "fifo" else order,
        "horizon": traits["horizon"],
        "over empty time": traits["jumps"],
        "deviations": "; ".join(traits["deviations"]) or "none",
    }
    return {"scheme": Entry(traits["scheme"], ", ".join(parameters), number=False), **texts(told)}


def advice(summary: Summary) -> Table:
    """The traits that say what a scheme costs and is good for."""
    rows = {who: plain_row(texts(_advice(who.traits))) for who in summary.contestants}
    return Table("suits", "What each scheme costs and suits", ("trait",), rows)


def _advice(traits: Mapping[str, Any]) -> dict[str, str]:
    return {
        "declared costs": "; ".join(traits["costs"]),
        "suits": traits["suits"],
        "drawback": traits["drawback"],
        "next expiry": "exact" if traits["exact_next_expiry"] else "a bound that may be earlier",
        "source": traits["source"],
    }
