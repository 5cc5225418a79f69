import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from compare.cli.main import main
from compare.trial.bench.comparison import DEFAULT_WORKLOADS
from tests.reports.synthetic import write_synthetic
from timers.registry import names

pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def small_run(runs="runs"):
    return write_synthetic(Path(runs).absolute(), names()[2:4], (1000,), workloads=())


@pytest.fixture
def compared(monkeypatch):
    """Comparisons that were asked for, with the traces that are opened already; each gives a
    made-up run.
    """
    asked = []

    def run_comparison(options, traces):
        asked.append((options, traces))
        return small_run(options.runs)

    monkeypatch.setattr("compare.trial.bench.run.run_comparison", run_comparison)
    return asked


def report(*arguments: str) -> None:
    assert main(["report", *arguments]) == 0


def test_a_stored_run_is_shown(tmp_path, capsys):
    run = small_run()
    report("--run", str(run), "--out", "page")
    assert capsys.readouterr().out.splitlines()[-1] == str(tmp_path / "page" / "index.html")
    assert (tmp_path / "page" / "index.html").is_file()
    assert json.loads((tmp_path / "page" / "report.json").read_text())["run"] == str(run)


def test_the_newest_run_of_a_store_is_shown(tmp_path):
    _, newest = sorted([small_run(), small_run()])
    report("--run", "runs")
    assert json.loads((tmp_path / "report" / "report.json").read_text())["run"] == str(newest)


def test_without_a_run_one_is_made(tmp_path, compared, capsys):
    report("--sizes", "1e3", "--repeats", "2", "--runs", "elsewhere")
    ((options, opened),) = compared
    assert (options.sizes, options.repeats, options.runs) == ((1000,), 2, "elsewhere")
    assert (options.traces, opened) == ((), [])
    assert capsys.readouterr().out.splitlines()[-1] == str(tmp_path / "report" / "index.html")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--run", "nowhere"], r"nowhere does not exist"),
        (["--run", "empty"], r"empty is not a stored run: it has no manifest\.json"),
        (["--run", "file"], r"file is not a stored run: it is not a directory"),
        (["--run", "cut"], r"cut/samples\.parquet is not a readable Parquet file"),
        (
            ["--run", "run", "--out", "thesis"],
            r"thesis contains chapter, which would be deleted; choose another --out",
        ),
        (["--run", "run", "--out", "file"], r"file is not a directory"),
        (["--run", "run", "--out", "broken"], r"broken is not a directory"),
        (
            ["--run", "run", "--out", "file/below"],
            r"cannot write file/below: .*file is not a directory",
        ),
        (["--run", "run", "some.trace"], r"the trace some\.trace is not used"),
        (["--run", "run", "--timers", "delay-queue"], r"is stored; --timers is not used"),
        (["--replayed", "results", "--strict"], r"--replayed shows what is stored; --strict"),
        (["--run", "run", "--timeout", "5s"], r"--timeout needs --requests"),
        (["--idle", "5s"], r"--idle needs --touches"),
        (["--time", "ts"], r"--time needs --requests or --touches"),
        (["--touches", "log", "--duration", "d"], r"--duration needs --requests"),
        (["--requests", "log", "--run", "run"], r"cannot be used together"),
        (["--run"], r"option '--run' requires an argument"),
    ],
)
def test_nonsense_is_one_line(tmp_path, capsys, compared, arguments, said):
    small_run().rename(tmp_path / "run")
    cut = small_run()
    (cut / "samples.parquet").write_bytes((cut / "samples.parquet").read_bytes()[:-9])
    cut.rename(tmp_path / "cut")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "broken").symlink_to("gone")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").touch()
    before = sorted(tmp_path.rglob("*"))
    assert main(["report", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"wheelwork: error: [^\n]*{said}[^\n]*\n", err), err
    assert sorted(tmp_path.rglob("*")) == before
    assert compared == []


# ---- logs

ZEEK = """\
#separator \\x09
#set_separator\t,
#empty_field\t(empty)
#unset_field\t-
#path\tdns
#fields\tts\tuid\tid.orig_h\trtt
#types\ttime\tstring\taddr\tinterval
1521911720.865716\tC1\t10.47.1.100\t0.000870
1521911721.5\tC2\t10.47.1.101\t-
"""
ACCESS = (
    '83.149.9.216 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 203023 "-" "Mozilla/5.0"\n'
)


@pytest.fixture
def ingested(monkeypatch):
    """Logs that were to be read: (log, out, reading), and what else was said about them."""
    asked = []

    def ingest(log, out, options, **rows):
        asked.append(((log, out, options), rows))
        return SimpleNamespace(trace=f"the trace {out}")

    for kind in ("requests", "touches"):
        monkeypatch.setattr(f"compare.traffic.logs.ingest.ingest_{kind}", ingest)
    monkeypatch.setattr("compare.cli.commands.ingest.summary", lambda *parts: "the summary")
    monkeypatch.setattr("compare.trial.replay.profile.profile", lambda trace: None)
    return asked


@pytest.mark.parametrize(
    ("text", "arguments", "assumed"),
    [
        (ZEEK, ["--requests", "log"], "--time ts --duration rtt --timeout 5s"),
        (ZEEK, ["--touches", "log", "--idle", "1m"], "--time ts --key id.orig_h"),
        (ACCESS, ["--touches", "log"], "--time time --key client --idle 30s"),
        (
            "1,2\n",
            ["--requests", "log", "--columns", "start,took", "--duration", "took"],
            "--time start --timeout 5s",
        ),
        (
            "start,took_ms\n1,2\n",
            ["--requests", "log"],
            "--time start --duration took_ms --timeout 5s --duration-unit ms",
        ),
        (
            "start,took_ms\n1,2\n",
            ["--requests", "log", "--duration-unit", "s"],
            "--time start --duration took_ms --timeout 5s",
        ),
    ],
)
def test_columns_of_common_logs_are_guessed(ingested, compared, capsys, text, arguments, assumed):
    Path("log").write_text(text)
    report(*arguments)
    assert capsys.readouterr().err == f"log: assuming {assumed}\n"


def test_what_cannot_be_guessed_is_asked_for(ingested, capsys):
    Path("log").write_text("when,how_long\n1,2\n")
    assert main(["report", "--requests", "log"]) == 2
    assert (
        "cannot guess the time column of log; pass --time COL, one of when, how_long"
        in capsys.readouterr().err
    )
    assert [path.name for path in Path().iterdir()] == ["log"]


def test_a_log_is_read_as_by_ingest(ingested, compared, capsys):
    Path("plain").write_text(ZEEK)
    report("--requests", "plain", "--time-is", "end", "--unit", "us", "--strict")
    ((log, out, how), others) = ingested.pop()
    assert (log, out) == ("plain", "runs/traces/plain.requests")
    assert (how.time, how.unit, how.strict, how.force, how.shards) == ("ts", "us", True, True, 1)
    expected = {"duration": "rtt", "end": None, "timeout": "5s"}
    expected |= {"duration_unit": "s", "time_is": "end"}
    expected |= dict.fromkeys(("id", "event", "starts", "ends"))
    assert others == expected
    assert capsys.readouterr().out.splitlines()[0] == "the summary"
    # It takes part beside the usual workloads.
    ((options, opened),) = compared
    assert (options.traces, options.workloads) == ((), DEFAULT_WORKLOADS)
    assert opened == [f"the trace {out}"]
    given = ("--time", "a", "--duration", "b", "--timeout", "1s", "--workload", "uniform")
    report("--requests", "somewhere/dns.log.gz", "--runs", "here", *given)
    ((log, out, how), others) = ingested.pop()
    assert (log, out, how.time) == ("somewhere/dns.log.gz", "here/traces/dns.requests", "a")
    assert (others["duration"], others["timeout"]) == ("b", "1s")
    assert compared[1][0].workloads == ("uniform",)
    assert "assuming" not in capsys.readouterr().err
    report("--requests", "-", *given)
    assert ingested.pop()[0][1] == "runs/traces/log.requests"
    report("--requests", "plain", "--end", "rtt")
    assert ingested.pop()[1] == expected | {"duration": None, "end": "rtt", "time_is": "start"}


def test_traces_take_the_place_of_workloads_as_in_compare(compared):
    report("some.trace")
    ((options, opened),) = compared
    assert (options.traces, options.workloads, opened) == (("some.trace",), None, [])
