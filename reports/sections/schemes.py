"""The declared traits of each scheme."""

from reports.sections.parts import Entry, Row, Section, Table
from reports.summary import StoredContestant, Summary

DOES, SUITS = "what it does", "what it costs and suits"


def section(summary: Summary) -> Section | None:
    """Make the section: the traits of all contestants."""
    if not summary.contestants:
        return None
    checked = "" if summary.of_shards else "Expiries are checked before anything is timed. "
    rows = {timer: traits_of(timer) for timer in summary.contestants}
    return Section(
        "schemes",
        "The schemes",
        lead=f"What each scheme declares about itself. {checked}"
        "The tests check the counted work against the declared costs.",
        tables=[Table("schemes", "Traits", ("about", "trait"), rows, chosen={"about": DOES})],
        folded=True,
    )


def traits_of(timer: StoredContestant) -> Row:
    """The traits of a timer, by their titles."""
    traits = timer.traits
    shown = dict(traits["parameters"])
    if traits["tick"] is not None:
        shown["tick"] = traits["tick"]
    parameters = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items())
    fires, order = traits["due_at"], traits["order"]
    texts: dict[tuple[str, ...], str] = {
        (DOES, "fires at"): fires if timer.exact else f"{fires}. Here: {timer.precision}.",
        (DOES, "order within one unit"): "first armed, first fired" if order == "fifo" else order,
        (DOES, "horizon"): traits["horizon"],
        (DOES, "over empty time"): traits["jumps"],
        (DOES, "deviations"): "; ".join(traits["deviations"]) or "none",
        (SUITS, "declared costs"): "; ".join(traits["costs"]),
        (SUITS, "suits"): traits["suits"],
        (SUITS, "drawback"): traits["drawback"],
        (SUITS, "next expiry"): "exact"
        if traits["exact_next_expiry"]
        else "a bound that may be earlier",
        (SUITS, "source"): traits["source"],
    }
    entries = {heading: Entry(text) for heading, text in texts.items()}
    return {(DOES, "scheme"): Entry(traits["scheme"], parameters), **entries}
