"""What the helpers of all languages repeat, as data, and the section of each helper that has it.

A helper travels alone, so it cannot include a common file. `python -m compare.trial.peers.shared`
writes the facts between the two marks of each helper.
"""

import json
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import NamedTuple

from compare.traffic.tapes.flat import ALIGNMENT, CELLS, HEADER, MAGIC, VERSION
from compare.traffic.tapes.tape import ARM, CANCEL, REARM, START
from compare.trial.peers.catalogue import HERE
from compare.trial.peers.protocol import BINS, PhaseTime
from compare.trial.peers.threads import DONE, GRACE_NS, RAN, REFUSED, UNIT_NS

Value = int | str | tuple[str, ...]

_OWN = ("thread_ns", "memory_bytes")
_NOT_COMMON = (*_OWN, "counts", "histogram")
_COMMON = tuple(part.name for part in fields(PhaseTime) if part.name not in _NOT_COMMON)
FACTS: Mapping[str, Mapping[str, Value]] = {
    "A tape begins with it and a zero byte.": {"MAGIC": MAGIC.to_bytes(7, "little").decode()},
    "Of a tape; in bytes.": {"VERSION": VERSION, "HEADER": 8 * HEADER, "ALIGNMENT": ALIGNMENT},
    "Where the int64s of the header are.": {
        f"{cell}_AT".upper(): 8 * CELLS.index(cell)
        for cell in ("version", "operations", "id_space", "first_time", "phases")
    },
    "Operations.": {"START": START, "CANCEL": CANCEL, "REARM": REARM, "ARM": ARM},
    "The bins of a histogram: enough for 2^63 ns.": {"BINS": BINS},
    "Defaults of options.": {"ROUNDS": 7, "WARM_UP": 5, "THREADS_ROUNDS": 1, "PRODUCERS": 2},
    "What a row of `threads` says.": {"REFUSED": REFUSED, "DONE": DONE, "RAN": RAN},
    "A unit of `threads`; how long it waits for a call, and then for one that is too many.": {
        "UNIT_NS": UNIT_NS,
        "GRACE_MS": GRACE_NS // 1_000_000,
        "SETTLE_MS": 50,
    },
    "The exit code for a bad command or tape.": {"BAD_INPUT": 2},
    "Problems of a tape, after its path.": {"NO_TAPE": "is not a tape", "CUT": "is cut short"},
    "The usage.": {"COMMANDS": "describe | check TAPE OUT | time TAPE"},
    "The members of a line of `time` and `threads`.": {"COMMON": _COMMON},
    "And those that `threads` may leave out.": {"OWN": _OWN},
}
"""Comment -> name -> a number, a text or the members of JSON; a group has one of these types."""

Write = Callable[[Mapping[str, str]], str]  # name -> literal


def _each(before: str, item: str = "{} = {}", join: str = ", ", after: str = ";") -> Write:
    return lambda facts: before + join.join(item.format(*fact) for fact in facts.items()) + after


def _pairs(facts: Mapping[str, str]) -> str:
    return f"{', '.join(facts)} = {', '.join(facts.values())}"


class Syntax(NamedTuple):
    """How a language writes groups of constants."""

    numbers: Write
    texts: Write
    place: str = ""  # of a number in a format; a language without formats gets the names alone
    name: Callable[[str], str] = str
    comment: str = "//"

    def literal(self, value: Value) -> str:
        """A value as the language writes it; members are a JSON object that is still open."""
        if not isinstance(value, tuple):
            return json.dumps(value)
        if not self.place:
            return json.dumps(" ".join(value))
        members = ", ".join(f'"{name}": %d' for name in value)
        begin = ", " if value == _OWN else "{"
        return json.dumps(begin + members).replace("%d", self.place)


_DEFINE = _each("#define ", "{} {}", "\n#define ", "")
_JAVA = "private static final "
SYNTAXES = {
    "peer.py": Syntax(_pairs, _pairs, comment="#"),
    "peer.h": Syntax(_each("enum { ", after=" };"), _DEFINE, '%" PRId64 "', "PEER_{}".format),
    "peer.hpp": Syntax(_each("constexpr int64_t "), _each("constexpr char ", "{}[] = {}"), "%ld"),
    "Peer.java": Syntax(_each(_JAVA + "int "), _each(_JAVA + "String "), "%d"),
    "peer.mjs": Syntax(_each("const "), _each("const ")),
    "peer.rs": Syntax(
        _each("", "pub const {}: i64 = {};", "\n", ""),
        _each("", "pub const {}: &str = {};", "\n", ""),
    ),
    "peer.go": Syntax(_pairs, _pairs, "%v", lambda name: "peer" + name.title().replace("_", "")),
}
"""By the file of the helper."""


def updated(helper: str) -> str:
    """The text of a helper, with the facts between its marks."""
    syntax, lines = SYNTAXES[helper], ""
    for comment, group in FACTS.items():
        facts = {syntax.name(name): syntax.literal(value) for name, value in group.items()}
        are_numbers = isinstance(next(iter(group.values())), int)
        write = syntax.numbers if are_numbers else syntax.texts
        lines += f"{syntax.comment} {comment}\n{write(facts)}\n"
    text = (HERE / helper).read_text(encoding="utf-8")
    marks = re.compile(
        r"^([ \t]*)(\S+ from shared\.py: begin\n).*?^(\1\S+ from shared\.py: end\n)", re.M | re.S
    )
    new, count = marks.subn(
        lambda found: found[1] + found[2] + textwrap.indent(lines, found[1]) + found[3], text
    )
    if count != 1:
        raise ValueError(f"{helper} has {count} sections from shared.py; it must have one")
    return new


if __name__ == "__main__":
    for name in SYNTAXES:
        (HERE / name).write_text(updated(name), encoding="utf-8")
