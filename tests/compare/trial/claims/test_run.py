"""Running, storing and printing claims. Without peers, since none needs to be built here."""

import json
from dataclasses import replace

import pytest

from compare.cli.main import main
from compare.trial.claims.base import NOT_DECIDED
from compare.trial.claims.catalogue import BY_NUMBER, CLAIMS, ClaimError, claims_numbered
from compare.trial.claims.run import run_claims, settled
from compare.trial.peers.catalogue import CACHE
from compare.trial.results.schema import Row
from compare.trial.results.store import CLAIMS as KIND
from compare.trial.results.store import PURGATORY, new_run, read_run
from tests.words import one_line
from timers.errors import TimerError

OWN = 15  # a claim that needs no peer
OF_KAFKA = 19


@pytest.fixture
def no_peers(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE, str(tmp_path / "nothing"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return read_run(run_claims([OWN], quick=True, runs=str(tmp_path_factory.mktemp("runs"))))


def test_numbers_are_unique_and_ascending():
    numbers = [claim.number for claim in CLAIMS]
    assert numbers == sorted({*numbers})


def test_experiments_have_names_of_their_own():
    by_name = {}
    for claim in CLAIMS:
        assert by_name.setdefault(claim.experiment.name, claim.experiment) is claim.experiment


def test_only_the_experiments_of_the_claims_are_run(run):
    (each,) = settled(run.rows)
    assert each.claim.number == OWN
    assert {row.subject for row in run.rows} == {each.claim.experiment.name}
    assert run.manifest["kind"] == "claims" and run.manifest["parameters"]["quick"]


def test_counted_work_is_the_same_again(run):
    claim = BY_NUMBER[OWN]
    assert claim.experiment.rows(True) == list(run.rows)


def test_an_experiment_that_fails_leaves_the_others(tmp_path, monkeypatch):
    def fail(quick):
        raise TimerError("it takes too long")

    monkeypatch.setattr(
        "compare.trial.claims.run.experiments_of",
        lambda claims: [replace(BY_NUMBER[18].experiment, measure=fail), BY_NUMBER[OWN].experiment],
    )
    found = settled(read_run(run_claims([OWN, 18], quick=True, runs=str(tmp_path))).rows)
    verdicts = {each.claim.number: each.verdict for each in found}
    assert verdicts[OWN].kind != NOT_DECIDED
    assert verdicts[18] == (NOT_DECIDED, "as drawn: it takes too long", "")


def test_a_missing_peer_is_one_line(no_peers, tmp_path, capsys):
    assert main(["claims", str(OF_KAFKA), "--quick", "--out", str(tmp_path / "runs")]) == 0
    printed = capsys.readouterr().out
    assert "Not decided here" in printed and "java-kafka" in printed


def test_the_command_prints_what_is_stored(run, capsys):
    stored = ["claims", "--run", str(run.path)]
    assert main(stored) == 0
    assert f"{BY_NUMBER[OWN].text[:30]}" in capsys.readouterr().out
    assert main([*stored, str(OWN)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    verdict = settled(run.rows)[0].verdict
    assert f"{verdict.sentence} {verdict.text}" in printed and BY_NUMBER[OWN].rule in printed
    assert main([*stored, "--json"]) == 0
    stored = json.loads(capsys.readouterr().out)
    assert stored["noise"] == {"score": None, "processor_share": None, "busy": False}
    (claim,) = stored["claims"]
    assert (claim["number"], claim["claim"]) == (OWN, BY_NUMBER[OWN].text)
    assert (claim["verdict"], claim["because"]) == (verdict.kind, verdict.text)
    assert len(claim["figures"]) == len(run.rows)


def write(root, kind, rows=()):
    """Store a run with these rows, of processes that mostly waited."""
    manifest = {
        **{name: {} for name in ("versions", "parameters", "agreement")},
        **{name: [] for name in ("command", "sources", "contestants")},
        "machine": {"cpu": "Example CPU", "cores": 2},
        **dict.fromkeys(("commit", "dirty")),
    }
    with new_run(root, kind, manifest, ["all"]) as writer:
        writer.write("all", rows)
        writer.finish(seconds={"wall": 10.0, "cpu": 1.0})


def test_the_noise_is_that_of_repeated_times(tmp_path, capsys):
    rows = [
        Row("a", BY_NUMBER[25].experiment.name, 10, metric, repeat, value)
        for metric, values in {"cancel_time": (10.0, 12.0), "fired": (1.0, 3.0)}.items()
        for repeat, value in enumerate(values)
    ]
    write(tmp_path, KIND, rows)
    assert main(["claims", "--run", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Noise 20%: half of the measurements have")
    assert "\nVerdicts that rest on times, and may change from run to run: claims 25.\n" in printed
    assert "busy" not in printed


def test_a_run_of_another_kind_is_one_line(tmp_path, capsys):
    write(tmp_path, PURGATORY)
    assert main(["claims", "--run", str(tmp_path)]) == 2
    assert f"{tmp_path} has no run of kind 'claims'; the newest is" in capsys.readouterr().err
    (run,) = tmp_path.iterdir()
    assert main(["claims", "--run", str(run)]) == 2
    assert "is a run of kind 'purgatory', not of claims" in capsys.readouterr().err


def test_an_unknown_claim_gets_a_suggestion(capsys):
    with one_line(ClaimError, "no claim is called '99'"):
        claims_numbered([99])
    for name, hint in {"151": "did you mean '15'", "kafka": "there are 1, 2, 3", "1.5": ""}.items():
        assert main(["claims", name]) == 2
        err = capsys.readouterr().err
        assert f"no claim is called '{name}'; {hint}" in err and err.count("\n") == 1
