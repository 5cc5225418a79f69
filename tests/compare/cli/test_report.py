import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from compare.cli.main import main
from compare.cli.printing import plain
from compare.traffic.logs.inspect import Inspection
from compare.traffic.logs.options import LogOptions
from compare.traffic.tapes.tape import Tape
from compare.traffic.tapes.trace import open_trace, write_trace
from compare.trial.bench.comparison import QUICK_TAILS, Comparison
from compare.trial.bench.constants import Constants, Fit
from compare.trial.bench.costs import rows_of_fit
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
    """Comparisons that were asked for; each gives a made-up run."""
    asked = []

    def run_comparison(options, finished):
        asked.append(options)
        finished("pending-10", [])
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


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ([], {}),
        (["a.trace", "b.trace"], {"traces": ("a.trace", "b.trace")}),
        (["--workload", "uniform"], {"workloads": ("uniform",)}),
        (["--workload", "a,b", "--workload", "c"], {"workloads": ("a", "b", "c")}),
        (["a.trace", "--workload", "x"], {"traces": ("a.trace",), "workloads": ("x",)}),
    ],
)
def test_without_a_run_one_is_made(tmp_path, compared, capsys, arguments, given):
    report(*arguments)
    command = ("wheelwork", "report", *arguments)
    assert compared == [Comparison(**given, budget=0.5, tails=QUICK_TAILS, command=command)]
    assert capsys.readouterr().out.splitlines()[-1] == str(tmp_path / "report" / "index.html")


def test_other_delays_are_measured_when_asked_for_else_the_command_is_told(compared, capsys):
    report("--workload", "uniform")
    told = "costs are those of random delays; for others: wheelwork report --workload uniform"
    assert f"{told} --all-delays" in capsys.readouterr().err
    report("--all-delays")
    assert [each.all_delays for each in compared] == [False, True]
    assert "--all-delays" not in capsys.readouterr().err


@pytest.mark.parametrize("of_trace", [False, True])
def test_the_first_answer_comes_with_the_costs_for_python(tmp_path, monkeypatch, capsys, of_trace):
    """It is that of the trace, where one is given."""

    def run_comparison(options, finished):
        for caller in ("python", "batches"):
            subject, constants = f"{caller}, random", Constants(1_000, 2_000, 0, 0, 0, 0, 0)
            rows = [
                row
                for size in (10, 1_000)
                for label, ns in (("delay-queue", 1_000), ("sched", 1_000 + 99 * size))
                for row in rows_of_fit(
                    label, subject, size, Fit(constants._replace(pair=ns), 0.1, ())
                )
            ]
            finished(f"costs-{caller}-random", rows)
        return small_run(options.runs)

    monkeypatch.setattr("compare.trial.bench.run.run_comparison", run_comparison)
    if of_trace:  # 100 timers a second, none of which is cancelled
        time = np.arange(0, 5_000, 10)
        tape = Tape(time, np.zeros(500, np.int8), np.arange(500, dtype=np.int32), time + 1_000)
        write_trace("t", [tape], unit="ms", source={})
    report(*["t"] * of_trace)
    err = plain(capsys.readouterr().err)
    [line] = [line for line in err.splitlines() if "first answer" in line]
    if of_trace:
        case = "100 timers/s, 0% cancelled, timeout 1.00 s: keep sched, 0.02% of a core"
    else:  # 900 pairs of 1 us and 100 fires of 2; sched has 144 of them
        case = "1,000 timers/s, 90% cancelled, timeout 10.0 s: delay-queue, 0.11% of a core"
    assert line == f"wheelwork: first answer, for Python: {case}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--run", "run", "--all-delays"], r"--all-delays is for a measurement"),
        (["--run", "nowhere"], r"nowhere does not exist"),
        (["--run", "empty"], r"empty is not a stored run: it has no manifest\.json"),
        (["--run", "file"], r"file is not a stored run: it is not a directory"),
        (["--run", "cut"], r"cut/all\.parquet is not a readable Parquet file"),
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
        (["--run", "run", "--workload", "uniform"], r"is stored; --workload is not used"),
        (["--replayed", "results", "--requests", "log", "--timeout", "5s"], r"--requests is not"),
        (["--run", "run", "--touches", "log", "--idle", "5s"], r"--touches is not used"),
        (["--run", "run", "--replayed", "results"], r"cannot be used together"),
        (["--run", "run", "--timeout", "5s"], r"--requests and --timeout must be given together"),
        (["--requests", "log"], r"--requests and --timeout must be given together"),
        (["--idle", "5s"], r"--touches and --idle must be given together"),
        (["--requests", "log", "--idle", "5s"], r"--requests and --timeout must be given"),
        (["--requests", "nowhere", "--timeout", "5s"], r"nowhere does not exist"),
        (["--requests", "file", "--timeout", "5s"], r"file is empty"),
        (["--run"], r"option '--run' requires an argument"),
    ],
)
def test_nonsense_is_one_line(tmp_path, capsys, compared, arguments, said):
    small_run().rename(tmp_path / "run")
    cut = small_run()
    (cut / "all.parquet").write_bytes((cut / "all.parquet").read_bytes()[:-9])
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
ALB = Path(__file__).parents[1].joinpath("traffic/logs/samples/alb.log").read_text()
READ = LogOptions("ts", force=True)


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
    return asked


REQUESTS, TOUCHES = ("--requests", "log", "--timeout", "5s"), ("--touches", "log", "--idle", "1m")


@pytest.mark.parametrize(
    ("text", "arguments", "assumed"),
    [
        (ZEEK, REQUESTS, "--time ts --duration rtt"),
        (ZEEK, TOUCHES, "--time ts --key id.orig_h"),
        (ACCESS, TOUCHES, "--time time --key client"),
        ("start,end\n1,2\n", REQUESTS, "--time start --end end"),
        ("start,took_ms\n1,2\n", REQUESTS, "--time start --duration took_ms --duration-unit ms"),
        (ALB, REQUESTS, "--time request_creation_time --duration target_processing_time"),
    ],
)
def test_columns_of_common_logs_are_guessed(ingested, compared, capsys, text, arguments, assumed):
    Path("log").write_text(text)
    report(*arguments)
    assert capsys.readouterr().err.splitlines()[0] == f"log: assuming {assumed}"


@pytest.mark.parametrize(
    ("text", "arguments", "listed", "command"),
    [
        (
            "when,how_long\n1,2\n",
            REQUESTS,
            "when, how_long",
            "requests log --time COL --duration COL --timeout 5s --out requests.trace",
        ),
        (
            "ts,how_long\n1,2\n",
            REQUESTS,
            "ts, how_long",
            "requests log --time ts --duration COL --timeout 5s --out requests.trace",
        ),
        (
            "ts,end\n1,2\n",
            TOUCHES,
            "ts, end",
            "touches log --time ts --key COL --idle 1m --out touches.trace",
        ),
        (
            "1722470400,0.5\n1722470401,0.5\n",
            REQUESTS,
            "1722470400, 0.5",
            "requests log --columns NAMES --time 1722470400 --duration COL --timeout 5s"
            " --out requests.trace",
        ),
    ],
)
def test_where_columns_cannot_be_guessed_the_command_is_named(
    compared, capsys, text, arguments, listed, command
):
    Path("log").write_text(text)
    assert main(["report", *arguments]) == 2
    assert capsys.readouterr().err == (
        f"wheelwork: error: cannot guess the columns of log from {listed}; name them: wheelwork"
        f" ingest {command}\n"
    )
    assert [path.name for path in Path().iterdir()] == ["log"]
    assert compared == []


def test_a_log_is_read_as_by_ingest(ingested, compared, capsys):
    Path("dns.log").write_text(ZEEK)
    Path("app.log").write_text("start,took_ms\n1,2\n")
    report("--requests", "dns.log", "--timeout", "5s", "--touches", "dns.log", "--idle", "1m")
    out = "runs/traces/dns"
    assert ingested == [
        (("dns.log", f"{out}.requests", READ), {"duration": "rtt", "timeout": "5s"}),
        (("dns.log", f"{out}.touches", READ), {"key": "id.orig_h", "idle": "1m"}),
    ]
    assert capsys.readouterr().out.splitlines()[:2] == ["the summary"] * 2
    # The logs are traces like others: there are no default workloads beside them.
    assert compared[0].traces == (f"{out}.requests", f"{out}.touches")
    assert compared[0].workloads is None
    report("--requests", "app.log", "--timeout", "1s", "a.trace", "--workload", "uniform")
    _, others = ingested.pop()
    assert others == {"duration": "took_ms", "duration_unit": "ms", "timeout": "1s"}
    assert compared[1].traces == ("a.trace", "runs/traces/app.requests")
    assert compared[1].workloads == ("uniform",)


@pytest.mark.parametrize(
    ("log", "name"), [("log/*.gz", "log"), ("dns.log.gz", "dns"), ("-", "log"), ("[ab]*.csv", "ab")]
)
def test_a_trace_is_called_as_its_log(ingested, compared, monkeypatch, log, name):
    seen = Inspection(SimpleNamespace(), (), {"time": "ts", "key": "user"}, None)
    monkeypatch.setattr("compare.traffic.logs.inspect.inspect", lambda log, layout: seen)
    report("--touches", log, "--idle", "5s")
    assert ingested[0][0][:2] == (log, f"runs/traces/{name}.touches")


def test_a_log_becomes_a_trace(compared):
    """Replacing that of an earlier report."""
    for rows in (1, 2):
        lines = (f"{second},0.5,a\n" for second in range(1_722_470_400, 1_722_470_400 + rows))
        Path("app.csv").write_text("ts,duration,user\n" + "".join(lines))
        report("--requests", "app.csv", "--timeout", "1s")
        assert open_trace("runs/traces/app.requests").totals["cancels"] == rows
