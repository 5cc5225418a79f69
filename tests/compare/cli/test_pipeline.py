"""`wheelwork pipeline`: all stages in one application, resumed, refused, and nothing half-done."""

import json
import shutil
from pathlib import Path

import pytest

import compare.spark.session
from compare.cli.commands.pipeline import PAGE, RESULTS, TRACE
from compare.cli.main import BAD_INPUT, INTERRUPTED
from compare.traffic.tapes.trace import open_trace
from compare.trial.pipeline.results import open_results
from reports.page import MARK
from tests.compare import made_logs as logs

LINE = "pipeline keepalive --operations 2_000 --shards 3 --timers delay-queue,hashed-wheel --out o"
RUNS_ON = "runs on"


@pytest.fixture
def no_spark(monkeypatch):
    """Fails if Spark is started."""

    def refuse(*_):
        raise AssertionError("Spark is not needed")

    monkeypatch.setattr(compare.spark.session, "spark_session", refuse)


@pytest.fixture
def interrupted(monkeypatch, request):
    """Interrupts a stage."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(request.param, interrupt)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
class TestOnSpark:
    @pytest.mark.usefixtures("bare")
    def test_a_workload_becomes_a_page_and_stages_that_are_done_are_skipped(
        self, said, here, monkeypatch
    ):
        code, out, err = said(*LINE.split())
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert lines[0].startswith(f"{RUNS_ON}     Spark ")
        assert "local[2], 2 cores, Java " in lines[0]
        assert "operations  2,000: 1,575 starts, 425 arms" in lines
        assert "trace       o/trace in 3 shards" in lines
        assert "o/results: 2 timers x 3 shards, 2,000 operations" in out
        assert ", all as the oracle expects" in out
        assert lines[-1] == str(here / "o" / PAGE / "index.html")
        assert "every expiry, by the compiled oracle" in Path(lines[-1]).read_text()
        assert json.loads((here / "o" / TRACE / "manifest.json").read_text())["made_by"][
            "executor"
        ] == ("spark")

        results = open_results(here / "o" / RESULTS)
        page = Path(lines[-1]).stat().st_mtime_ns
        again = self.without_spark(said, monkeypatch)
        assert again.splitlines() == lines[1:]
        assert Path(lines[-1]).stat().st_mtime_ns == page

        # A stage that is not complete is done again, and what comes after it.
        trace = open_trace(here / "o" / TRACE)
        shutil.rmtree(results.path)
        code, out, err = said(*LINE.split())
        assert (code, err) == (0, "")
        assert RUNS_ON in out
        assert open_trace(here / "o" / TRACE) == trace
        assert open_results(here / "o" / RESULTS).manifest["run"] != results.manifest["run"]
        assert Path(lines[-1]).stat().st_mtime_ns > page

    @pytest.mark.usefixtures("bare")
    def test_a_uri_and_a_page_elsewhere(self, said, fails, here):
        line = LINE.replace("--out o", f"--out {here.as_uri()}/o")
        assert "--page DIR is needed" in fails(*line.split())
        assert not list(here.iterdir())
        first = said(*line.split(), "--page", "page")
        again = said(*line.split(), "--page", "page")
        for code, out, err in (first, again):
            assert (code, err) == (0, "")
            assert "2 timers x 3 shards, 2,000 operations" in " ".join(out.split())
            assert ", all as the oracle expects" in out
            assert out.splitlines()[-1] == str(here / "page" / "index.html")
        assert first[1].splitlines()[1:] == again[1].splitlines()[1:]
        other = line.replace("2_000", "3_000")
        code, _, err = said(*other.split(), "--page", "page")
        assert (code, "has another pipeline (source differs)" in err) == (BAD_INPUT, True)

    def without_spark(self, said, monkeypatch, line=LINE):
        with monkeypatch.context() as patch:
            patch.setattr(compare.spark.session, "spark_session", None)
            code, out, err = said(*line.split())
        assert (code, err) == (0, "")
        return out

    @pytest.mark.usefixtures("bare")
    @pytest.mark.parametrize(
        ("rows", "operations", "checked"),
        [
            ("--duration rtt --timeout 5s", "10: 6 starts, 4 cancels", "the compiled oracle"),
            ("--key id.orig --idle 30s", "arms", "the compiled oracle"),
        ],
    )
    def test_a_log_becomes_a_page(self, said, here, monkeypatch, rows, operations, checked):
        logs.as_jsonl(here / "log")
        line = f"pipeline log --time ts {rows} --timers delay-queue --shards 2 --out o"
        code, out, err = said(*line.split())
        assert (code, err) == (0, "")
        assert operations in out
        assert out.count(f"o/{TRACE}") == 1
        assert "all as the oracle expects" in out
        assert (here / "o" / PAGE / MARK).exists()
        assert f"every expiry, by {checked}" in (here / "o" / PAGE / "index.html").read_text()
        again = self.without_spark(said, monkeypatch, line).splitlines()[1:]
        # Warnings about the log are those of the reading, between trace and replays.
        lines = [text for text in out.splitlines() if not text.startswith("warning")]
        assert again == lines[-len(again) :]

    def test_a_timer_that_is_wrong_has_no_page(self, said, here):
        line = LINE.replace("hashed-wheel", "tests.compare.own_timers:Late")
        code, out, err = said(*line.split())
        assert (code, err) == (1, "")
        assert "late, operation" not in out
        assert " late" in out
        assert not (here / "o" / PAGE).exists()

    @pytest.mark.parametrize(
        ("interrupted", "left"),
        [
            ("compare.spark.engine.OnSpark.write", None),
            ("compare.trial.pipeline.replay._replay", {TRACE, "manifest.json"}),
            ("reports.page._write", {TRACE, RESULTS, "manifest.json"}),
        ],
        indirect=["interrupted"],
    )
    @pytest.mark.usefixtures("interrupted")
    def test_an_interrupt_leaves_nothing_half_done(self, said, here, left):
        code, _, err = said(*LINE.split())
        assert (code, err) == (INTERRUPTED, "wheelwork: interrupted\n")
        assert {entry.name for entry in here.iterdir()} == ({"o"} if left else set())
        assert not left or {entry.name for entry in (here / "o").iterdir()} == left


def test_without_the_extra_it_says_so_in_one_line(fails, here, monkeypatch):
    monkeypatch.setattr(compare.spark.session, "find_spec", lambda name: None)
    assert "needs pyspark and pandas: run pip install '.[pipeline]'" in fails(*LINE.split())
    assert not list(here.iterdir())


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("uniform", "specify --operations N"),
        ("uniform --operations 9 --shards 10", "operations of 10 shards"),
        ("uniform --operations 9 --set rat=1", "rat"),
        ("uniform --operations 9 --key k", "--key cannot be used with a workload"),
        ("log.csv --operations 9 --timeout 1s", "--operations cannot be used with a log"),
        ("unifrom --operations 9", "did you mean 'uniform'?"),
        ("log.csv --timeout 1s", "a log of requests needs --time"),
        ("log.csv --idle 1s --time t", "a log of touches needs --key"),
        ("log.csv --idle 1s --timeout 1s", "--timeout and --idle cannot be used together"),
        ("uniform --operations 9 --timers delay-queu", "did you mean 'delay-queue'?"),
        ("uniform --operations 9 --out table:db.t", "a pipeline has several datasets"),
        ("uniform --operations 9 --out s3a://b/o", "--page DIR is needed"),
    ],
)
def test_nonsense_is_one_line_before_spark_starts(fails, here, line, says):
    timers = "" if "--timers" in line else "--timers delay-queue"
    out = "" if "--out" in line else "--out o"
    assert says in fails(*f"pipeline {line} {timers} {out}".split())
    assert not list(here.iterdir())


@pytest.mark.usefixtures("no_spark")
def test_a_directory_of_something_else_is_refused(fails, here):
    (here / "o").mkdir()
    (here / "o" / "mine").touch()
    assert "o is not the directory of a pipeline: it has no manifest.json" in fails(*LINE.split())
    asked = {"source": {"workload": "keepalive"}, "timers": ["a"]}
    manifest = {"format": "wheelwork-pipeline", "version": 2, **asked}
    (here / "o" / "manifest.json").write_text(json.dumps(manifest))
    assert "o has another pipeline (source differs)" in fails(*LINE.split())
    assert (here / "o" / "mine").exists()
