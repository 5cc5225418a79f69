"""Mechanical mutation of the kernels: every comparison, every number, every + and -, one at a time
(Cosmic Ray).

    nox -s mutation                                all kernels; about half an hour on one core
    nox -s mutation -- hashed_wheel pool           some of them
    nox -s mutation -- --out survivors.md          write the survivors down as well

Each mutant is judged without the JIT by judge.py, in a copy of the project: the working tree is not
touched. Ends with status 1 when fewer than 90 % are killed. What survives, and why, is in
docs/mutation.md.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "timers" / "kernels"
NOT_MUTATED = {
    "__init__",
    "counters",
    "dispatch",
    "jit",
    "prefetch",
}  # they compare and add nothing
REQUIRED = 0.9  # of all mutants
TIMEOUT = (
    300.0  # seconds for one mutant; the judge gives up earlier on whatever does not come to an end
)

# Each comparison is moved to its neighbour (< to <=) and turned round (< to >=); numbers become one
# more and one less.
COMPARISONS = "Lt_LtE|Lt_GtE|LtE_Lt|LtE_Gt|Gt_GtE|Gt_LtE|GtE_Gt|GtE_Lt|Eq_NotEq|NotEq_Eq"
CHOSEN = f"ReplaceComparisonOperator_({COMPARISONS})$|NumberReplacer$|ReplaceBinaryOperator_(Add_Sub|Sub_Add)$"

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


class Result(NamedTuple):
    """One mutant and what became of it."""

    kernel: str
    operator: str
    line: int
    killed: bool
    diff: tuple[str, str]  # the line before and after

    def __str__(self) -> str:
        return f"{self.kernel}.py:{self.line}: {self.diff[0]}  ->  {self.diff[1]}"


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
        raise SystemExit(
            f"{kernel} fails its tests as it is:\n{Path(directory, 'judge.log').read_text()[-3000:]}"
        )
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
        return list(results(kernel, database))


def results(kernel: str, database: WorkDB) -> Iterator[Result]:
    mutations = {item.job_id: item.mutations[0] for item in database.work_items}
    for job, result in database.results:
        if result.worker_outcome == WorkerOutcome.NORMAL:
            lines = [
                line for line in result.diff.splitlines() if not line.startswith(("---", "+++"))
            ]
            before, after = (
                " ".join(next(line for line in lines if line.startswith(sign))[1:].split())
                for sign in "-+"
            )
            killed = result.test_outcome != TestOutcome.SURVIVED
            mutation = mutations[job]
            yield Result(
                kernel, mutation.operator_name, mutation.start_pos[0], killed, (before, after)
            )


def report(found: list[Result], seconds: float) -> str:
    kernels = list(dict.fromkeys(result.kernel for result in found))
    lines = ["| kernel | mutants | killed | survived |", "|---|---|---|---|"]
    for name, chosen in [*((kernel, {kernel}) for kernel in kernels), ("all", set(kernels))]:
        killed = [result.killed for result in found if result.kernel in chosen]
        lines.append(f"| {name} | {len(killed)} | {sum(killed)} | {len(killed) - sum(killed)} |")
    share = sum(result.killed for result in found) / len(found)
    lines += ["", f"{share:.1%} killed, in {seconds / 60:.0f} minutes", ""]
    lines += sorted({str(result) for result in found if not result.killed})
    return "\n".join(lines)


def main() -> None:
    kernels = sorted({path.stem for path in KERNELS.glob("*.py")} - NOT_MUTATED)
    parser = argparse.ArgumentParser(
        prog="nox -s mutation --", description="Mechanical mutation of the kernels."
    )
    parser.add_argument(
        "kernels", nargs="*", help=f"some of {', '.join(kernels)}; all, if none is named"
    )
    parser.add_argument(
        "--out", type=Path, help="a file to write the report to, beside printing it"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.kernels) - set(kernels):
        parser.error(f"no kernel is called {sorted(unknown)[0]!r}; there are {', '.join(kernels)}")
    started, found = time.monotonic(), []
    with copied_project() as directory, judge(directory) as socket:
        for kernel in arguments.kernels or kernels:
            found += mutate(kernel, directory, socket)
            text = report(found, time.monotonic() - started)
            if arguments.out:
                arguments.out.write_text(text + "\n")
            print(f"{text}\n", flush=True)
    sys.exit(sum(result.killed for result in found) < REQUIRED * len(found))


if __name__ == "__main__":
    main()
