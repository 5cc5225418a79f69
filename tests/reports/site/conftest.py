"""A small site: two runs of one made-up machine, and one of another that ranks them otherwise."""

import json
import shutil
from pathlib import Path

import pytest

from compare.trial.results.contributed import contribute, contributed
from compare.trial.results.store import MANIFEST, read_run
from reports.charts.pictures import Picture
from reports.site.build import ROOT, build
from tests.reports.stored import store
from tests.reports.synthetic import write_synthetic

TIMERS = ("delay-queue", "hashed-wheel", "hierarchical-wheel", "cascading-wheel")
SIZES = (1_000, 10_000)
OTHER = {"cpu": "Other CPU", "cores": 8, "memory_bytes": 2**34, "platform": "Linux-6.1"}


def created(path, moment):
    """The run at `path` as if it had been made at another moment."""
    manifest = json.loads((path / MANIFEST).read_text())
    (path / MANIFEST).write_text(json.dumps(manifest | {"created": moment}))
    return read_run(path)


@pytest.fixture(scope="session")
def results(tmp_path_factory) -> Path:
    """A checkout with stored results, and the pages that the site is made from."""
    root = tmp_path_factory.mktemp("checkout")
    (root / "docs" / "figures").mkdir(parents=True)
    for name in ("claims.json", "figures/peers.md", "figures/passes.md"):
        shutil.copy(ROOT / "docs" / name, root / "docs" / name)
    run = write_synthetic(root / "runs", TIMERS, SIZES, ("uniform",))
    later = shutil.copytree(run, root / "runs" / "later")
    first = created(run, "2026-01-10T12:00:00+00:00")
    second = created(later, "2026-01-11T12:00:00+00:00")
    # On the other machine, the two wheels change places in the task hold; all counts are the same.
    swapped = {"hashed-wheel": "cascading-wheel", "cascading-wheel": "hashed-wheel"}
    rows = [
        row._replace(contestant=swapped.get(row.contestant, row.contestant))
        if (row.metric, row.subject) == ("time", "hold")
        else row
        for row in first.rows
    ]
    kept = ("command", "commit", "dirty", "versions", "parameters", "sources", "contestants")
    facts = {name: first.manifest[name] for name in kept}
    third = store(root / "others", rows, machine=OTHER, **facts)
    for each in (first, second, created(third, "2026-01-12T12:00:00+00:00")):
        contribute(each, root / "results")
    assert len(contributed(root / "results")) == 3
    return root


@pytest.fixture(scope="session")
def site(results, tmp_path_factory) -> Path:
    """The folder of the site, without the documentation."""
    out = tmp_path_factory.mktemp("built") / "site"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Picture, "png", lambda picture: b"")
        build(str(out), results)
    return out
