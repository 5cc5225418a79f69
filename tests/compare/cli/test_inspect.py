"""`wheelwork inspect --json`: of a log and of a trace."""

import json
import shlex
from pathlib import Path

import pytest

from compare.cli.main import main
from compare.traffic.tapes.tape import OP_COUNTS
from compare.traffic.tapes.trace import open_trace
from compare.trial.pipeline.generate import generate

SAMPLES = Path(__file__).parents[1] / "traffic" / "logs" / "samples"


@pytest.mark.parametrize("name", ["app.csv", "alb.log", "journal.json"])
def test_json_says_how_a_log_is_read(said, name):
    log = str(SAMPLES / name)
    code, out, _ = said("inspect", log, "--json")
    seen, text = json.loads(out), " ".join(said("inspect", log)[1].replace("\\\n", "").split())
    assert (code, seen["log"], seen["compression"]) == (0, log, None)
    assert f"format {seen['format']}" in text
    assert len(seen["columns"]) > 2
    for column in seen["columns"]:
        assert column["name"] in text and column["kind"] in text
    assert {"time"} <= seen["guesses"].keys()
    assert seen["commands"] and all(command in text for command in seen["commands"])
    for command in seen["commands"]:
        assert main(shlex.split(command)[1:]) == 0


def test_json_describes_a_trace(said):
    trace = generate("keepalive", "t", operations=300, shards=2)
    seen = json.loads(said("inspect", "t", "--json")[1])
    assert (seen["trace"], seen["unit"], seen["shards"]) == ("t", trace.unit, 2)
    counts = {name: trace.totals[name] for name in ("rows", *OP_COUNTS)}
    assert (seen["operations"], seen["span"]) == (counts, open_trace("t").span)
    assert seen["description"]["armed"] > 0 and seen["source"]["workload"] == "keepalive"
