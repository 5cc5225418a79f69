"""Measure what the pages of docs/figures show, and write them: python -m tests.bench.figures.

    python -m tests.bench.figures [NAME ...]

A page has a title, what is measured, the machine, the commit, the date, and each command with its
output. If a command fails, the page stays as it was. Pages are made one after the other, so that
they do not disturb each other: all of them take about six hours.
"""

import shlex
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from compare.base.files import new_file, reason
from compare.trial.bench.machine import surroundings
from compare.trial.results.contributed import machine_title
from timers.errors import unknown_name

ROOT = Path(__file__).parents[2]
WIDTH = 120
PYTEST = (
    "python -m pytest -q --no-header -o addopts= --benchmark-only --benchmark-quiet"
    " --benchmark-timer=time.thread_time tests/bench/bench_{}.py"
)
OVERLOAD = (
    "wheelwork compare --tails --timers cascading-wheel --sizes 1000 --workload uniform"
    " --operations 1000 --repeats 1 --markdown"
)


class Figure(NamedTuple):
    """A page of docs/figures."""

    title: str
    measured: str  # a sentence
    minutes: int  # about
    commands: tuple[str, ...]
    judges: bool = False  # exit code 1 is a verdict, such as "an operation became slower"


def _module(name: str, options: str = "") -> str:
    return f"python -m tests.bench.{name} {options}".strip()


FIGURES = {
    "ratios": Figure(
        "Ratios to the yardstick",
        "Each timer in replay, beside a bare compiled wheel or a heap in plain Python"
        " ([how it is measured](../performance.md#how-it-is-measured)).",
        10,
        (PYTEST.format("ratios"),),
    ),
    "cancels": Figure(
        "Where the time of a cancel goes",
        "A bare loop that cancels all timers of a cascading wheel; each variant removes one cost.",
        2,
        (_module("cancels", "--size 1e5,1e6 --rounds 9"),),
    ),
    "callers": Figure(
        "What a timer costs its callers",
        "Single calls, batches, a SystemTimer, an event loop and compiled code.",
        10,
        (PYTEST.format("calls"), "wheelwork compare --markdown"),
    ),
    "growth": Figure(
        "Growth and memory",
        "Timers that start a million timers and grow on the way, in place and by copies.",
        3,
        (_module("growth"),),
    ),
    "languages": Figure(
        "Timers of other languages",
        "Peers and this project's timers on the same tapes, in turns; CPU time in ns.",
        60,
        (_module("peers"),),
    ),
    "adapters": Figure(
        "Programs without an adapter",
        "Hold in three peers and in programs that call the same structure without an adapter.",
        3,
        (_module("bare"),),
    ),
    "threads": Figure(
        "Several threads",
        "What 1, 2 and 4 threads pay that start and cancel timers at once.",
        15,
        (_module("threads", "--repeats 3"),),
    ),
    "peers": Figure(
        "The peers of this project",
        "What each peer says of itself, if it is built.",
        1,
        ("wheelwork peers --markdown",),
    ),
    "wrong-timers": Figure(
        "Wrong timers",
        "Programs that break one rule each: the rule that caught them and the smallest tape.",
        10,
        ("python -m tests.compare.trial.peers.wrong_list",),
    ),
    "passes": Figure(
        "Who passes the check",
        "What `wheelwork peers check` says of the peers that are built.",
        4,
        ("wheelwork peers check --quick",),
        judges=True,
    ),
    "against": Figure(
        "Beside earlier commits",
        "Every operation that programs call often: the ratio of this commit to earlier ones"
        " ([how it is measured](../performance.md#beside-earlier-commits)).",
        30,
        (_module("against", "32bcb32 17af148 195622e --markdown -"),),
        judges=True,
    ),
    "services": Figure(
        "What the services cost",
        "Calls of a SystemTimer and of event loops beside asyncio's, with many calls pending.",
        10,
        (_module("services", "--rounds 3"),),
    ),
    "loops": Figure(
        "Event loops",
        "Sleeps and timeouts on asyncio's own loop, uvloop, and the wheel's loop on each of them.",
        10,
        (_module("loops", "--rounds 3"),),
    ),
    "far-timers": Figure(
        "Beside far timers",
        "One call that becomes due, beside others that are due in minutes.",
        10,
        (_module("far_timers", "--rounds 3"),),
    ),
    "overload": Figure(
        "Overload",
        "The lateness of calls at 50 to 120 % of what a service or a loop can run.",
        5,
        (OVERLOAD,),
    ),
    "purgatories": Figure(
        "Purgatories",
        "Requests per second of CPU that are watched under three shared keys and completed."
        "\n\n![Requests per second of CPU](../pictures/purgatory-rates.png)",
        5,
        (_module("purgatories", "--rounds 3 --draw"),),
    ),
    "idle-connections": Figure(
        "Idle connections",
        "CPU time of an IdleDetector per simulated second, beside two scans.",
        10,
        (_module("idle_detectors", "--rounds 1"),),
    ),
    "search": Figure(
        "How good the search is",
        "The cheapest timer that `advise` found, beside the best of all candidates.",
        10,
        (_module("advice"),),
        judges=True,
    ),
    "answers": Figure(
        "How good the answers are",
        "What `advise --rate` says of random settings, beside replays of them"
        " ([how it is measured](../advice.md#how-good-the-answers-are)).",
        90,
        (_module("answers", "--long"),),
        judges=True,
    ),
    "tuned": Figure(
        "A wheel tuned by hand",
        "The CPU time that the panel for tuning states, beside the programs of other languages.",
        5,
        (_module("tuned"),),
    ),
    "hosts": Figure(
        "Event loops in real time",
        "Which loop an asyncio program should use, beside its traffic in real time.",
        5,
        (_module("hosts", "--seconds 1 --rounds 2"),),
        judges=True,
    ),
    "purgatory": Figure(
        "Figures of the enqueue experiment",
        "Two designs of a purgatory under the same requests.",
        3,
        ("wheelwork purgatory --seconds 1 --refinements 1 --markdown",),
    ),
    "pipeline": Figure(
        "Figures of the pipeline",
        "What the stages of the pipeline and `wheelwork ingest` cost, beside two processes.",
        30,
        (_module("pipeline", "--operations 2e7"),),
    ),
    "recording": Figure(
        "Figures of the recorders",
        "What recording a program costs it; an event is a start, a cancel or a re-arm.",
        3,
        (_module("recording"), _module("jvm_recording")),
    ),
}
"""The pages, in the order in which they are made."""


class CommandError(Exception):
    """A command that failed."""


def output_of(command: str, *, judges: bool) -> str:
    """What a command prints. Raises CommandError if it fails or prints nothing."""
    try:
        done = subprocess.run(shlex.split(command), cwd=ROOT, capture_output=True, text=True)
    except OSError as error:
        raise CommandError(f"{command}: {reason(error)}") from None
    crashed = done.returncode != 1 or "Traceback" in done.stderr
    if (done.returncode and (crashed or not judges)) or not done.stdout.strip():
        words = (done.stderr.strip() or "it printed no error").splitlines()[-1]
        raise CommandError(f"{command}: exit code {done.returncode}: {words}")
    return done.stdout


def shown(output: str) -> str:
    """Tables as they are, and other lines as blocks of text."""
    parts = []
    for is_table, lines in groupby(output.splitlines(), key=lambda line: line.startswith("|")):
        if is_table:
            parts.append("\n".join(lines))
        elif text := "\n".join(filled(line) for line in lines).strip("\n"):
            parts.append(f"```text\n{text}\n```")
    return "\n\n".join(parts)


def filled(line: str) -> str:
    """A line, or several if it is too long for a page of the documentation."""
    return textwrap.fill(line, WIDTH, break_on_hyphens=False)


def page(figure: Figure, facts: Mapping[str, Any]) -> str:
    """The text of a page; its commands run. Raises CommandError."""
    commit = f"{(facts['commit'] or 'unknown')[:7]}{' with changes' if facts['dirty'] else ''}"
    versions = "CPython {python}, Numba {numba}".format(**facts["versions"])
    machine = f"{machine_title(facts)}, {facts['machine']['platform']}, {versions}"
    measured = "\n\n".join(map(filled, figure.measured.split("\n\n")))
    text = f"# {figure.title}\n\n{measured}\n\n"
    text += filled(f"Machine: {machine}.")
    text += f"\nCommit: {commit}. Date: {datetime.now(UTC):%Y-%m-%d}.\n"
    for command in figure.commands:
        output = shown(output_of(command, judges=figure.judges))
        text += f"\n{filled(f'Command: `{command}`')}\n\n{output}\n"
    return text


def main(names: list[str], folder: Path = ROOT / "docs" / "figures") -> int:
    """Write the pages with these names, or all; 1 if a command failed."""
    for name in names:
        if name not in FIGURES:
            sys.exit(unknown_name("page", name, FIGURES))
    facts = surroundings()  # before the first page changes the checkout
    failed = False
    for name in names or FIGURES:
        print(f"{name}: about {FIGURES[name].minutes} minutes", flush=True)
        try:
            text = page(FIGURES[name], facts)
        except CommandError as error:
            failed = True
            print(f"{name}: the page stays as it was; {error}", flush=True)
            continue
        with new_file(folder / f"{name}.md") as temporary:
            temporary.write_text(text, encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
