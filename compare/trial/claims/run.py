"""Run the experiments of claims, store them as a run, and judge stored rows."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare.base.progress import progress_bar
from compare.trial.bench.machine import surroundings
from compare.trial.claims.base import Claim, Verdict, missing
from compare.trial.claims.catalogue import CLAIMS, claims_numbered, experiments_of
from compare.trial.results.schema import Row
from compare.trial.results.store import CLAIMS as KIND
from compare.trial.results.store import check_store, new_run
from timers.errors import TimerError


@dataclass(frozen=True)
class Settled:
    """A claim with the rows that decide it."""

    claim: Claim
    rows: Sequence[Row]

    @property
    def verdict(self) -> Verdict:
        """The verdict on the rows."""
        return self.claim.verdict(self.rows)

    def as_json(self) -> dict[str, Any]:
        """The number, the claim, the figures and the verdict as plain values."""
        kind, text, when = self.verdict
        names = ("contestant", "size", "metric", "repeat", "value", "note")
        return {
            "number": self.claim.number,
            "claim": self.claim.text,
            "source": self.claim.source,
            "measured": self.claim.experiment.measured,
            "rule": self.claim.rule,
            "verdict": kind,
            "when": when or None,
            "because": text,
            "figures": [{name: getattr(row, name) for name in names} for row in self.rows],
        }


def settled(rows: Iterable[Row]) -> list[Settled]:
    """The claims whose experiments have rows, by number."""
    by_subject: dict[str, list[Row]] = {}
    for row in rows:
        by_subject.setdefault(row.subject, []).append(row)
    return [
        Settled(claim, by_subject[claim.experiment.name])
        for claim in CLAIMS
        if claim.experiment.name in by_subject
    ]


def run_claims(
    numbers: Sequence[int] = (),
    *,
    quick: bool = False,
    runs: str = "runs",
    command: Sequence[str] = ("run_claims",),
) -> Path:
    """Run the experiments of these claims, all by default; return the path of the stored run.

    Raises ClaimError for an unknown claim, and RunError if the run cannot be stored.
    """
    experiments = experiments_of(claims_numbered(numbers))
    check_store(runs)
    manifest = {
        "command": list(command),
        **surroundings(),
        "parameters": {"claims": list(numbers), "quick": quick},
        "sources": [],
        "agreement": {},
        "contestants": [],
    }
    tasks = {experiment: experiment.name.replace(" ", "-") for experiment in experiments}
    started = time.perf_counter(), time.process_time()
    with (
        new_run(runs, KIND, manifest, [*tasks.values()]) as writer,
        progress_bar(len(experiments)) as bar,
    ):
        for experiment, task in tasks.items():
            bar.set_description_str(f"{experiment.name:<32}")
            try:
                rows = experiment.rows(quick)
            except TimerError as error:  # the others go on
                rows = [missing("experiment", str(error))._replace(subject=experiment.name)]
            writer.write(task, rows)
            bar.update()
        ended = time.perf_counter(), time.process_time()
        wall, cpu = (end - start for start, end in zip(started, ended, strict=True))
        writer.finish(seconds={"wall": wall, "cpu": cpu})
    return writer.path
