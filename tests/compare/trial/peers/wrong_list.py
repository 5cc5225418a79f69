"""All wrong timers of the tests as one table: python -m tests.compare.trial.peers.wrong_list.

Each is checked, and its row says the rule that caught it and the length of the smallest tape. The
programs are `wrong.py`, `wrong.c` and `wrong.mjs`, and `wrong_services.py` for several threads;
`wrong_timers.py` has the timers in Python for `pytest --timer`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from compare.trial.peers import catalogue
from compare.trial.peers.check import check_peer
from compare.trial.peers.run import Peer
from tests.compare.trial.peers import wrong, wrong_services, wrong_timers

HERE = Path(__file__).parent
PYTHON = {
    "late": "late",
    "early": "early",
    "strict": "late",
    "rotationoff": "late",
    "reversed": "order",
    "lifo": "fifo",
    "keeps": "cancelled",
    "keepssome": "cancelled",
    "keepsolddeadline": "late",
    "revives": "not armed",
    "stale": "missing",
    "int32": "early",
    "uint32": "early",
    "double": "early",
    "wraps": "early",
    "twice": "twice",
    "unknown": "unknown",
    "crash": "broken",
    "wakeslate": "late",
    "wakesattheend": "late",
    "wakesnever": "broken",
    "earlyatwraps": "early",
    "lostwhenrefiled": "missing",
    "earlywhenrefiled": "early",
    "shuffledbyjumps": "order",
    "lostbyjumps": "missing",
    "grown": "missing",
    "full": "missing",
    "rearmedtwice": "twice",
    "lostwhenrearmed": "missing",
    "rearmaddsup": "late",
    "rearmkeepsitsplace": "fifo",
    "oneofeach": "missing",
    "cancelstwo": "missing",
    "cancelsthelast": "cancelled",
    "staleclock": "early",
    "clamps": "early",
    "pastwaits": "late",
    "oldoperation": "cancelled",
}
C = {
    "int32": ("delays are 32-bit integers", "early"),
    "uint32": ("delays are unsigned 32-bit integers", "late"),
    "float": ("delays are floats", "early"),
    "shift": ("a shift by 32 and more", "early"),
    "unsigned": ("a past deadline wraps", "late"),
    "before": ("a timer is filed before its equals", "fifo"),
    "overwrites": ("a timer takes the place of its equal at the head", "broken"),
    "forgets": ("the first of 17 timers is lost", "broken"),
    "head": ("the head of a list is not unlinked", "broken"),
    "tail": ("the tail of a list is not unlinked", "broken"),
    "inplace": ("a re-arm changes the deadline, but moves nothing", "late"),
    "strict": ("what is due at the very moment waits", "late"),
    "onlyone": ("one timer fires in an advance", "late"),
}
JAVASCRIPT = {
    "sortstexts": ("sort() without a comparison", "order"),
    "clamps": ("a delay above 2^31 - 1 is taken for 1", "early"),
    "bitwise": ("`deadline \\| 0` is a 32-bit integer", "early"),
    "map": ("a Map from deadline to timer holds one of them", "broken"),
    "splices": ("a cancel finds a timer by its deadline", "cancelled"),
    "skips": ("an array is changed while it is walked", "late"),
    "falsy": ("a deadline of 0 counts as none", "late"),
    "keeps": ("a re-arm of a pending timer is ignored", "cancelled"),
    "lifo": ("last in, first out, though declared FIFO", "fifo"),
    "rounds": ("rounds up to a tick of 10, and does not say so", "late"),
}


FAULTS = {
    "Python": PYTHON,
    "C": {name: rule for name, (_, rule) in C.items()},
    "JavaScript": {name: rule for name, (_, rule) in JAVASCRIPT.items()},
}
"""The rule that catches each fault, by language."""


def programs(folder: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """For each language, the command before a fault, and the faults. C is built in a folder."""
    built = folder / "wrong"
    words = ["-std=c17", "-O2", "-I", catalogue.HERE, "-o", built, HERE / "wrong.c"]
    subprocess.run(["gcc", *words], check=True)
    commands = {
        "Python": [sys.executable, wrong.__file__],
        "C": [str(built)],
        "JavaScript": ["node", str(HERE / "wrong.mjs")],
    }
    return {language: (command, FAULTS[language]) for language, command in commands.items()}


def says(language: str, fault: str) -> str:
    """What is wrong, in a few words."""
    if language == "Python":
        text = wrong.CLASSES[fault].__doc__.split("\n")[0].removesuffix(".")
        return text[:1].lower() + text[1:]
    return (C if language == "C" else JAVASCRIPT)[fault][0]


def main() -> None:
    """Check all, and print the table."""
    lines = ["| language | what is wrong | caught by the rule | operations |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for language, (command, faults) in programs(Path(folder)).items():
            for fault in faults:
                failure = check_peer(Peer((*command, fault)), shrink_seconds=20).failure
                caught = f"{failure.fault.kind} | {failure.tape.time.size:,}" if failure else "-"
                lines.append(f"| {language} | {says(language, fault)} | {caught} |")
                print(lines[-1], file=sys.stderr)
    for fault in wrong_services.RULES:
        failure = check_peer(Peer((sys.executable, wrong_services.__file__, fault))).failure
        caught = failure.fault.kind if failure else "-"
        lines.append(f"| Python, threads | {wrong_services.CLASSES[fault].__doc__} | {caught} | |")
    for rule, cls in wrong_timers.RULES.items():
        text = cls.__doc__.split("\n")[0].removesuffix(".")
        rule = rule.replace("{}", "…")
        lines.append(f"| Python, `--timer` | {text[:1].lower() + text[1:]} | {rule} | |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
