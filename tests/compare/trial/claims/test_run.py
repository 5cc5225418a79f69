"""Running, storing and printing claims. Without peers, since none needs to be built here."""

import json
from dataclasses import replace

import pytest

from compare.base.files import CACHE
from compare.cli.main import main
from compare.trial.claims.base import NOT_DECIDED
from compare.trial.claims.catalogue import BY_NUMBER, CLAIMS, ClaimError, claims_numbered
from compare.trial.claims.run import run_claims, settled
from compare.trial.results.schema import Row
from compare.trial.results.store import CLAIMS as KIND
from compare.trial.results.store import COMPARISON, PURGATORY, new_run, read_run
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
    assert verdicts[18] == (NOT_DECIDED, "as drawn: it takes too long.", "")


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
    assert printed.startswith("Noise 20%: typically, the slowest sample")
    assert "\nVerdicts that rest on times, and may change from run to run: claims 25.\n" in printed
    assert "busy" not in printed


def test_a_run_of_another_kind_is_one_line(tmp_path, capsys):
    write(tmp_path, PURGATORY)
    assert main(["claims", "--run", str(tmp_path)]) == 2
    assert f"{tmp_path} has no run of kind 'claims'; the newest is" in capsys.readouterr().err
    (run,) = tmp_path.iterdir()
    assert main(["claims", "--run", str(run)]) == 2
    assert "is a run of kind 'purgatory', not of claims" in capsys.readouterr().err


def test_an_unknown_claim_is_one_line(capsys):
    with one_line(ClaimError, "no claim is called '99'; there are 1 to 30"):
        claims_numbered([99])
    for name in ("151", "kafka", "1.5", "08", "0", ""):
        assert main(["claims", name]) == 2
        assert one_error(capsys) == f"no claim is called '{name}'; there are 1 to 30"


def test_a_claim_that_was_not_measured_is_one_line(run, capsys):
    assert main(["claims", str(OWN), "8", "--run", str(run.path)]) == 2
    assert one_error(capsys) == f"{run.path} has no figures on claim 8"


def one_error(capsys):
    """The single line of error that was printed, without its head."""
    printed = capsys.readouterr()
    assert not printed.out and printed.err.count("\n") == 1
    return printed.err.strip().removeprefix("wheelwork: error: ")


# ---- two runs

RINGS = BY_NUMBER[18].experiment.name, BY_NUMBER[OWN].experiment.name


def store(root, early=0, scanned=None):
    """Store a run of claim 18, which holds if no connection is closed early, and perhaps of 15."""
    rows = [
        Row(who, RINGS[0], None, metric, None, float(value))
        for who, values in (("as drawn", (early, 30)), ("a full turn", (0, 30)))
        for metric, value in zip(("closed_early", "silence"), values, strict=True)
    ]
    if scanned is not None:
        rows.append(Row("unordered-list", RINGS[1], 1000, "looked_at", None, scanned))
    write(root, KIND, rows)
    return str(root)


def test_two_runs_are_compared_by_their_verdicts(tmp_path, capsys):
    holds, again, wrong = store(tmp_path / "a"), store(tmp_path / "b"), store(tmp_path / "c", 1)
    assert main(["diff", holds, again]) == 0
    assert "\n1 of 1 claim with the same verdict\n" in capsys.readouterr().out
    assert main(["diff", holds, wrong]) == 1
    printed = capsys.readouterr().out
    assert "\n18  When a packet arrives" in printed and "\n0 of 1 claim with the same" in printed
    assert "\nA   Holds. In the slot" in printed and "\nB   Wrong. In the slot" in printed
    assert max(map(len, printed.splitlines())) <= 80 or str(tmp_path) in printed
    assert main(["diff", holds, wrong, "--json"]) == 1
    plain = json.loads(capsys.readouterr().out)
    assert (plain["alike"], plain["different"], plain["undecided"]) == (0, [18], [])
    assert [each["verdict"] for each in plain["claims"][0]] == ["holds", "wrong"]


def test_what_is_not_decided_does_not_differ(tmp_path, capsys):
    one, other = store(tmp_path / "a", scanned=1.0), store(tmp_path / "b", scanned=2.0)
    assert main(["diff", one, other]) == 0
    printed = capsys.readouterr().out
    assert "\n15  Scanning all" in printed and "\nB   Not decided here. simple-wheel" in printed
    assert "\n1 of 1 claim with the same verdict\nnot decided in A or B: 1 claim\n" in printed
    write(tmp_path / "c", KIND, [Row("unordered-list", RINGS[1], 1000, "looked_at", None, 1.0)])
    assert main(["diff", one, str(tmp_path / "c")]) == 3
    assert "1 claim only in A" in capsys.readouterr().out


def test_runs_of_claims_that_cannot_be_compared_are_one_line(tmp_path, run, capsys):
    one, other = store(tmp_path / "a"), str(run.path)
    assert main(["diff", one, other]) == 2
    assert one_error(capsys).endswith(f"and {other} have no claim in common")
    for option in ("--counters", "--rankings", "--threshold=5", "--base=delay-queue"):
        assert main(["diff", one, one, option]) == 2
        assert "are compared by their verdicts, without options" in one_error(capsys)
    write(tmp_path / "b", COMPARISON)
    assert main(["diff", one, str(tmp_path / "b")]) == 2
    assert "is a run of kind 'claims', and" in one_error(capsys)
    write(tmp_path / "c", PURGATORY)
    (trials,) = map(str, (tmp_path / "c").iterdir())
    assert main(["diff", trials, trials]) == 2
    assert one_error(capsys).endswith("of 'purgatory': they cannot be compared")
