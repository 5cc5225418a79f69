"""Mechanical mutation of the kernels: every comparison, every number, every + and -, one at a time
(Cosmic Ray).

    nox -s mutation                          all kernels; hours on two cores
    nox -s mutation -- hashed_wheel pool     some of them
    nox -s mutation -- --page                only write docs/mutation.md from the stored results

Each mutant is judged without the JIT by judge.py, in a copy of the project: the working tree is not
touched. The results are stored in results.json, with the reason of each mutant that survives, and
docs/mutation.md is written from them. A reason is kept for as long as its mutant survives; give the
reasons of new survivors in results.json. Ends with status 1 if too few mutants are killed, or if a
survivor has no reason.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "timers" / "kernels"
RESULTS = ROOT / "tests" / "mutants" / "results.json"
PAGE = ROOT / "docs" / "mutation.md"
# What a timer does depends on no comparison and no number in these.
NOT_MUTATED = {"__init__", "counters", "dispatch", "jit", "prefetch"}
REQUIRED = 0.94  # of all mutants
TIMEOUT = 300.0  # seconds for one mutant; the judge itself gives up on endless loops earlier

# Each comparison is moved to its neighbour (< to <=) and turned round (< to >=); numbers become one
# more and one less.
COMPARISONS = "Lt_LtE|Lt_GtE|LtE_Lt|LtE_Gt|Gt_GtE|Gt_LtE|GtE_Gt|GtE_Lt|Eq_NotEq|NotEq_Eq"
CHOSEN = (
    f"ReplaceComparisonOperator_({COMPARISONS})$|NumberReplacer$"
    "|ReplaceBinaryOperator_(Add_Sub|Sub_Add)$"
)

CONFIG = """
[cosmic-ray]
module-path = "timers/kernels/{kernel}.py"
timeout = {timeout}
excluded-modules = []
test-command = "{python} -S tests/mutants/ask.py {socket} {kernel}"
[cosmic-ray.distributor]
name = "local"
[cosmic-ray.filters.operators-filter]
exclude-operators = ["core/(?!{chosen}).*"]
"""


PAGE_HEAD = """\
# Mechanical mutation of the kernels

Cosmic Ray changes the kernels in one place at a time: each comparison is moved to its neighbour and
turned round, each number becomes one more and one less, each `+` and `-` is exchanged. Each mutant
is judged, without the JIT, by the state machine, the references and the unit tests of what the
kernels share. `nox -s mutation` runs all kernels, `nox -s mutation -- hashed_wheel` one; it writes
this page from `tests/mutants/results.json`.

The figures of a kernel are those of its last run, at the commit and on the day given here. The
lines are those of that commit, with the names of today.

| kernel | mutants | killed | survived | | commit | date |
|---|---|---|---|---|---|---|
"""

PAGE_SURVIVORS = """
`counters`, `dispatch`, `jit` and `prefetch` are not mutated: no comparison or number there changes
what a timer does.

## Survivors, and why

A line that occurs more than once in a kernel stands for each of its mutants.

| kernel | mutation | reason |
|---|---|---|
"""


class Result(NamedTuple):
    """One mutant, and whether a test noticed it."""

    killed: bool
    before: str  # the changed line, without its comment
    after: str


@contextmanager
def copied_project() -> Iterator[Path]:
    """A copy of what the tests need, in a temporary directory, with no compiled files in it."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as directory:
        for package in ("timers", "tests"):
            shutil.copytree(
                ROOT / package,
                Path(directory, package),
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        shutil.copy(ROOT / "pyproject.toml", directory)
        yield Path(directory)


@contextmanager
def judge(directory: Path) -> Iterator[Path]:
    """The server that judges mutants; its socket."""
    path = directory / "judge"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "tests.mutants.judge", "--serve", str(path)]
    with Path(directory, "judge.log").open("w") as log:
        server = subprocess.Popen(command, cwd=directory, env=environment, stdout=log, stderr=log)
        try:
            while not path.exists():
                if server.poll() is not None:
                    raise SystemExit(Path(log.name).read_text())
                time.sleep(0.1)
            yield path
        finally:
            server.terminate()
            server.wait()


def mutate(kernel: str, directory: Path, socket: Path) -> list[Result]:
    """Run all mutants of one kernel."""
    ask = [sys.executable, "-S", "tests/mutants/ask.py", str(socket), kernel]
    if subprocess.run(ask, cwd=directory, check=False).returncode:
        log = Path(directory, "judge.log").read_text()[-3000:]
        raise SystemExit(f"{kernel} fails its tests without any mutation:\n{log}")
    config, session = f"{kernel}.toml", f"{kernel}.sqlite"
    text = CONFIG.format(
        kernel=kernel, timeout=TIMEOUT, python=sys.executable, socket=socket, chosen=CHOSEN
    )
    Path(directory, config).write_text(text)
    for command in (
        ("cosmic_ray.cli", "init", config, session),
        ("cosmic_ray.tools.filters.operators_filter", session, config),
        ("cosmic_ray.cli", "exec", config, session),
    ):
        subprocess.run([sys.executable, "-m", *command], cwd=directory, check=True)
    with use_db(Path(directory, session), WorkDB.Mode.open) as database:
        return list(results(database))


def results(database: WorkDB) -> Iterator[Result]:
    for _, result in database.results:
        if result.worker_outcome == WorkerOutcome.NORMAL:
            lines = [
                line for line in result.diff.splitlines() if not line.startswith(("---", "+++"))
            ]
            before, after = (
                " ".join(next(line for line in lines if line.startswith(sign))[1:].split())
                for sign in "-+"
            )
            killed = result.test_outcome != TestOutcome.SURVIVED
            yield Result(killed, before.partition(" # ")[0], after.partition(" # ")[0])


def record(found: list[Result], former: dict[str, Any]) -> dict[str, Any]:
    """What is stored of a run over one kernel; the reasons come from the former run."""
    reasons = {(s["before"], s["after"]): s["reason"] for s in former.get("survivors", [])}
    survivors = [(result.before, result.after) for result in found if not result.killed]
    changed = git("diff", "--stat", "HEAD", "--", "timers/kernels") != ""
    return {
        "commit": git("rev-parse", "--short", "HEAD") + (" and changes" if changed else ""),
        "date": datetime.now(UTC).date().isoformat(),
        "mutants": len(found),
        "killed": len(found) - len(survivors),
        "survivors": [
            {"before": before, "after": after, "reason": reasons.get((before, after), "")}
            for before, after in survivors
        ],
    }


def git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def share(stored: dict[str, Any]) -> float:
    """The share of all mutants that are killed."""
    return sum(r["killed"] for r in stored.values()) / sum(r["mutants"] for r in stored.values())


def page(stored: dict[str, Any]) -> str:
    """docs/mutation.md."""

    def row(name: str, mutants: int, killed: int, *origin: str) -> str:
        counts = f"{mutants} | {killed} | {mutants - killed} | {killed / mutants:.1%}"
        return f"| {name} | {counts} | {' | '.join(origin)} |\n"

    rows = [row(k, r["mutants"], r["killed"], r["commit"], r["date"]) for k, r in stored.items()]
    totals = (sum(r[key] for r in stored.values()) for key in ("mutants", "killed"))
    survivors = [
        f"| {kernel} | {mutation(survivor)} | {survivor['reason'] or 'none known yet'} |\n"
        for kernel, r in stored.items()
        for survivor in r["survivors"]
    ]
    # A dict keeps the first of equal lines.
    return "".join(
        [PAGE_HEAD, *rows, row("all", *totals, "", ""), PAGE_SURVIVORS, *dict.fromkeys(survivors)]
    )


def mutation(survivor: dict[str, str]) -> str:
    before, after = (survivor[key].replace("|", "\\|") for key in ("before", "after"))
    return f"`{before}` to `{after}`"


def main() -> None:
    kernels = sorted({path.stem for path in KERNELS.glob("*.py")} - NOT_MUTATED)
    parser = argparse.ArgumentParser(
        prog="nox -s mutation --", description="Mechanical mutation of the kernels."
    )
    parser.add_argument(
        "kernels", nargs="*", help=f"some of {', '.join(kernels)}; all, if none is named"
    )
    parser.add_argument(
        "--page", action="store_true", help="only write docs/mutation.md from the stored results"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.kernels) - set(kernels):
        parser.error(f"no kernel is called {sorted(unknown)[0]!r}; there are {', '.join(kernels)}")
    stored = json.loads(RESULTS.read_text())
    if not arguments.page:
        with copied_project() as directory, judge(directory) as socket:
            for kernel in arguments.kernels or kernels:
                found = mutate(kernel, directory, socket)
                stored[kernel] = record(found, stored.get(kernel, {}))
                RESULTS.write_text(json.dumps(stored, indent=1) + "\n")
                killed, mutants = stored[kernel]["killed"], stored[kernel]["mutants"]
                print(f"{kernel}: {killed} of {mutants} mutants killed", flush=True)
    PAGE.write_text(page(stored))
    unexplained = [
        f"{kernel}: {mutation(survivor)}"
        for kernel, r in stored.items()
        for survivor in r["survivors"]
        if not survivor["reason"]
    ]
    print(f"{share(stored):.1%} of all mutants killed", *unexplained, sep="\nno reason: ")
    sys.exit(share(stored) < REQUIRED or bool(unexplained))


if __name__ == "__main__":
    main()
