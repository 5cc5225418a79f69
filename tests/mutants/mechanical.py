"""Mechanical mutation: every comparison, every number, every operator, one at a time (Cosmic Ray).

    nox -s mutation                                     everything; hours on two cores
    nox -s mutation -- timers/kernels                   all kernels
    nox -s mutation -- compare reports                  the rest, a sample of SAMPLE mutants
    nox -s mutation -- timers/kernels/pool.py           some files
    nox -s mutation -- --page                           only write docs/mutation.md

Each mutant is judged by judge.py, in a copy of the project: the working tree is not touched. The
results are stored in results.json, with the reason of each mutant that survives, and
docs/mutation.md is written from them. A reason is kept for as long as its mutant survives; give the
reasons of new survivors in results.json. Ends with status 1 if too few mutants are killed, or if a
survivor has no reason.
"""

import argparse
import json
import os
import random
import re
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
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

# Run as a program, so that its folder is on the path and the project may not be.
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.mutants.loading import KERNELS, ROOT
from tests.mutants.product import TESTED_BY

RESULTS = ROOT / "tests" / "mutants" / "results.json"
PAGE = ROOT / "docs" / "mutation.md"
# What a timer does depends on no comparison and no number in these.
NOT_MUTATED = {"__init__", "counters", "dispatch", "jit", "prefetch"}
REQUIRED = {"kernels": 0.94, "others": 0.85}  # of all mutants
SAMPLE = 120  # mutants of all files outside the kernels together
SEED = 20261122  # of the sample
TIMEOUT = 300.0  # seconds for one mutant; the judge itself gives up on endless loops earlier

# Each comparison is moved to its neighbour (< to <=) and turned round (< to >=); numbers become one
# more and one less.
COMPARISONS = "Lt_LtE|Lt_GtE|LtE_Lt|LtE_Gt|Gt_GtE|Gt_LtE|GtE_Gt|GtE_Lt|Eq_NotEq|NotEq_Eq"
OPERATORS = (
    f"ReplaceComparisonOperator_({COMPARISONS})$|NumberReplacer$"
    "|ReplaceBinaryOperator_(Add_Sub|Sub_Add)$"
)
# Units and shares are products and quotients, and what is drawn depends on conditions.
MORE_OPERATORS = (
    "|ReplaceBinaryOperator_(Mul_Div|Div_Mul|FloorDiv_Mul)$"
    "|ReplaceAndWithOr$|ReplaceOrWithAnd$|ReplaceTrueWithFalse$|ReplaceFalseWithTrue$"
)

CONFIG = """
[cosmic-ray]
module-path = "{file}"
timeout = {timeout}
excluded-modules = []
test-command = "{python} -S tests/mutants/ask.py {socket} {file}"
[cosmic-ray.distributor]
name = "local"
[cosmic-ray.filters.operators-filter]
exclude-operators = ["core/(?!{chosen}).*"]
"""


# What no test of sound code can tell, and what only a person can judge: the look of the charts.
NOT_TOLD = re.compile(
    r"strict=True|frozen=True"
    r"|linewidth|linestyle|mark_of\(|zorder|pad=|spacing=|offset points|\(-?\d+(?: if .*)?, \d+\),$"
    r"|most_ticks=|MaxNLocator|margins\(|set_xlim|legend=shown|linthresh|^MOST_BARS"
)
LOOK = {"reports/charts/axes.py"}


PAGE_HEAD = """\
# Mechanical mutation

Cosmic Ray changes the source in one place at a time, and the tests must notice. Each comparison is
moved to its neighbour and turned round, each number becomes one more and one less, each `+` and `-`
is exchanged. `nox -s mutation` runs all files, `nox -s mutation -- timers/kernels/pool.py` one; it
writes this page from `tests/mutants/results.json`.

The figures of a file are those of its last run, at the commit and on the day given here. The lines
are those of that commit, with the names of today.

## Kernels

Each mutant is judged, without the JIT, by the state machine, the references and the unit tests of
what the kernels share. `counters`, `dispatch`, `jit` and `prefetch` are not mutated: no comparison
or number there changes what a timer does.

"""

OTHERS_HEAD = f"""
## Measurement, replay, oracles and reports

Here `*` and `/`, `and` and `or`, `True` and `False` are exchanged as well. Each mutant is judged by
the tests of its file. A run draws a sample of at most {SAMPLE} mutants from the files that it is
given, with a fixed seed. Left out are the look of the charts (`reports/charts/axes.py`, sizes,
dashes, margins, numbers of ticks, which line covers which), and `strict=True` and `frozen=True`,
which sound code does not depend on.

"""

TABLE_HEAD = """\
| file | mutants | killed | survived | | commit | date |
|---|---|---|---|---|---|---|
"""

PAGE_SURVIVORS = """
## Survivors, and why

A line that occurs more than once in a file stands for each of its mutants.

| file | mutation | reason |
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
        for package in ("timers", "compare", "reports", "tests"):
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
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
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


def prepare(file: str, directory: Path, socket: Path) -> Path:
    """List the mutants of a file; the session of Cosmic Ray that holds them."""
    if not asked(file, directory, socket):
        log = Path(directory, "judge.log").read_text()[-3000:]
        raise SystemExit(f"{file} fails its tests without any mutation:\n{log}")
    name = file.replace("/", ".")
    config, session = f"{name}.toml", f"{name}.sqlite"
    text = CONFIG.format(
        file=file,
        timeout=TIMEOUT,
        python=sys.executable,
        socket=socket,
        chosen=OPERATORS if is_kernel(file) else OPERATORS + MORE_OPERATORS,
    )
    Path(directory, config).write_text(text)
    cosmic_ray(directory, "cosmic_ray.cli", "init", config, session)
    cosmic_ray(directory, "cosmic_ray.tools.filters.operators_filter", session, config)
    return Path(directory, session)


def asked(file: str, directory: Path, socket: Path) -> bool:
    """Whether the file as it is now gets past its tests."""
    ask = [sys.executable, "-S", "tests/mutants/ask.py", str(socket), file]
    return subprocess.run(ask, cwd=directory, check=False).returncode == 0


def cosmic_ray(directory: Path, *command: str) -> None:
    subprocess.run([sys.executable, "-m", *command], cwd=directory, check=True)


def sample(sessions: dict[str, Path]) -> None:
    """Skip all but SAMPLE of the mutants of these sessions; each has the same chance."""
    pending: list[tuple[str, WorkItem]] = []
    for file, session in sessions.items():
        with use_db(session, WorkDB.Mode.open) as database:
            items = sorted(database.pending_work_items, key=place_of_mutation)
            pending += [(file, item) for item in items]
    told = [one for one in pending if can_be_told(*one)]
    kept = random.Random(SEED).sample(told, min(SAMPLE, len(told)))
    in_sample = {item.job_id for _, item in kept}
    for file, session in sessions.items():
        with use_db(session, WorkDB.Mode.open) as database:
            jobs = [item.job_id for name, item in pending if name == file]
            skipped = [job for job in jobs if job not in in_sample]
            database.set_multiple_results(skipped, WorkResult(WorkerOutcome.SKIPPED))
    print(f"{len(kept)} of {len(told)} mutants", flush=True)


def can_be_told(file: str, item: WorkItem) -> bool:
    """Whether a test could notice a mutant: not the look of a chart, nor the star of a signature,
    which is not an operator.
    """
    (mutation,) = item.mutations
    row, column = mutation.start_pos
    line = (ROOT / file).read_text().splitlines()[row - 1]
    return not NOT_TOLD.search(line) and not line.startswith("*,", column)


def place_of_mutation(item: WorkItem) -> tuple[str, int]:
    (mutation,) = item.mutations
    return mutation.operator_name, mutation.occurrence


def run_mutants(session: Path) -> list[Result]:
    """Judge all pending mutants of a session."""
    config = session.with_suffix(".toml").name
    cosmic_ray(session.parent, "cosmic_ray.cli", "exec", config, session.name)
    with use_db(session, WorkDB.Mode.open) as database:
        return list(results(database))


def is_kernel(file: str) -> bool:
    return Path(file).parent == KERNELS


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


def record(found: list[Result], former: dict[str, Any], commit: str) -> dict[str, Any]:
    """What is stored of a run over one file; the reasons come from the former run."""
    reasons = {(s["before"], s["after"]): s["reason"] for s in former.get("survivors", [])}
    survivors = [(result.before, result.after) for result in found if not result.killed]
    return {
        "commit": commit,
        "date": datetime.now(UTC).date().isoformat(),
        "mutants": len(found),
        "killed": len(found) - len(survivors),
        "survivors": [
            {"before": before, "after": after, "reason": reasons.get((before, after), "")}
            for before, after in survivors
        ],
    }


def present_commit() -> str:
    changed = git("diff", "--stat", "HEAD", "--", "timers", "compare", "reports") != ""
    return git("rev-parse", "--short", "HEAD") + (" and changes" if changed else "")


def git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def share(stored: dict[str, Any]) -> float:
    """The share of all mutants that are killed."""
    mutants = sum(r["mutants"] for r in stored.values())
    return sum(r["killed"] for r in stored.values()) / mutants if mutants else 1.0


def parts(stored: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The results of the kernels, and those of all other files."""
    return {
        "kernels": {file: r for file, r in stored.items() if is_kernel(file)},
        "others": {file: r for file, r in stored.items() if not is_kernel(file)},
    }


def page(stored: dict[str, Any]) -> str:
    """docs/mutation.md."""
    survivors = [
        f"| {file} | {mutation(survivor)} | {survivor['reason'] or 'none known yet'} |\n"
        for file, r in stored.items()
        for survivor in r["survivors"]
    ]
    kernels, others = parts(stored).values()
    # A dict keeps the first of equal lines.
    distinct = dict.fromkeys(survivors)
    sampled = table(others) if others else ["They have not been run as a whole yet.\n"]
    return "".join([PAGE_HEAD, *table(kernels), OTHERS_HEAD, *sampled, PAGE_SURVIVORS, *distinct])


def table(stored: dict[str, Any]) -> list[str]:
    """A row for each file, and one for all."""

    def row(name: str, mutants: int, killed: int, *origin: str) -> str:
        percentage = f"{killed / mutants:.1%}" if mutants else ""
        counts = f"{mutants} | {killed} | {mutants - killed} | {percentage}"
        return f"| {name} | {counts} | {' | '.join(origin)} |\n"

    rows = [row(f, r["mutants"], r["killed"], r["commit"], r["date"]) for f, r in stored.items()]
    totals = (sum(r[key] for r in stored.values()) for key in ("mutants", "killed"))
    return [TABLE_HEAD, *rows, row("all", *totals, "", "")]


def mutation(survivor: dict[str, str]) -> str:
    before, after = (survivor[key].replace("|", "\\|") for key in ("before", "after"))
    return f"`{before}` to `{after}`"


def chosen(arguments: list[str], files: list[str]) -> list[str]:
    """The files that are named, or lie in a folder that is named; all, if nothing is."""
    for argument in arguments:
        if not any(is_within(file, argument) for file in files):
            raise SystemExit(f"no file that is mutated is or lies in {argument!r}")
    return [f for f in files if not arguments or any(is_within(f, a) for a in arguments)]


def is_within(file: str, name: str) -> bool:
    return Path(name) in (Path(file), *Path(file).parents)


def main() -> None:
    kernels = sorted(
        str(KERNELS / path.name)
        for path in (ROOT / KERNELS).glob("*.py")
        if path.stem not in NOT_MUTATED
    )
    parser = argparse.ArgumentParser(prog="nox -s mutation --", description="Mechanical mutation.")
    parser.add_argument("files", nargs="*", help="files or folders; all, if none is named")
    parser.add_argument(
        "--page", action="store_true", help="only write docs/mutation.md from the stored results"
    )
    arguments = parser.parse_args()
    stored = json.loads(RESULTS.read_text())
    if not arguments.page:
        files = chosen(arguments.files, [*kernels, *(f for f in TESTED_BY if f not in LOOK)])
        commit = present_commit()
        with copied_project() as directory, judge(directory) as socket:
            sessions = {file: prepare(file, directory, socket) for file in files}
            sample({file: session for file, session in sessions.items() if not is_kernel(file)})
            for file, session in sessions.items():
                stored[file] = record(run_mutants(session), stored.get(file, {}), commit)
                RESULTS.write_text(json.dumps(stored, indent=1) + "\n")
                killed, mutants = stored[file]["killed"], stored[file]["mutants"]
                print(f"{file}: {killed} of {mutants} mutants killed", flush=True)
    PAGE.write_text(page(stored))
    unexplained = [
        f"{file}: {mutation(survivor)}"
        for file, r in stored.items()
        for survivor in r["survivors"]
        if not survivor["reason"]
    ]
    shares = {part: share(results) for part, results in parts(stored).items()}
    print(*(f"{part}: {killed:.1%} killed" for part, killed in shares.items()), sep="\n")
    print(*(f"no reason: {line}" for line in unexplained), sep="\n")
    sys.exit(bool(unexplained) or any(shares[part] < REQUIRED[part] for part in REQUIRED))


if __name__ == "__main__":
    main()
