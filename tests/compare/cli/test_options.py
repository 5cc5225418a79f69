"""Each option is handed on as its own argument, and bad ones are one line."""

from dataclasses import replace

import pytest

from compare.cli.main import INTERRUPTED
from compare.trial.bench.comparison import Comparison
from compare.trial.purgatory.options import QUICK, Experiment

OWN = "tests.compare.own_timers:"
NO_COUNT = "is not a positive whole number, such as 5000 or 1e6"

NO_COUNTS = ("0", "1.5", "nan", "inf", "x", "1e-3", "1.23e1", "1e999", "0x10", "1e", "+", "_1")

NONSENSE = {
    "": {
        "replya": "no command is called 'replya'; did you mean 'replay'? (see wheelwork --help)",
        "xyz": "no command is called 'xyz'; there are timers, generate, inspect, ingest, record,",
        "--jsno": "no such option",
        "ingest": "missing command (see wheelwork ingest --help)",
    },
    "timers": {
        "--jsno": "--json",
        "--js": "no such option",
        "HashedWheel": "no timer is called 'HashedWheel'; did you mean 'hashed-wheel'?",
        "os:path": "'os:path' is not a class",
        ":": "cannot import ':'",
    },
    "generate": {
        "unifrom": "no workload is called 'unifrom'; did you mean 'uniform'?",
    },
    "generate uniform": {
        "--timer-count 5": "name the trace to write: --out TRACE",
        "--out new": "specify --timer-count N or --operations N",
    },
    "generate uniform --out new": {
        "--timer-count 5 --operations 5": "--timer-count and --operations cannot be used together",
        **{
            f"--timer-count {bad}": f"invalid value for '--timer-count': '{bad}' {NO_COUNT}"
            for bad in NO_COUNTS
        },
        "--timer-count=": f"invalid value for '--timer-count': '' {NO_COUNT}",
        "--timer-count=-3": f"invalid value for '--timer-count': '-3' {NO_COUNT}",
        f"--timer-count {'9' * 400}": NO_COUNT,
        "--timer-count 1e10": "timers must lie in [1, 2147483647], not 10000000000",
        "--timer-count 5 --seed -1": "seed must lie in [0, 18446744073709551615], not -1",
        "--timer-count 5 --seed 1.0": "invalid value for '--seed': '1.0' is not an integer",
        "--timer-count 5 --set rate": "'rate' is not a parameter and an integer, such as rate=5",
    },
    "generate uniform --timer-count 5 --out": {
        "a-file": "a-file exists and is not a trace",
        "a-file/below": "cannot write a-file/below",
    },
    "replay": {
        "": "missing argument 'TRACE' (see wheelwork replay --help)",
        "some.trace": "missing option '--timers' (see wheelwork replay --help)",
        "some.trace --timer delay-queue": "no such option",
        "some.trace --timers delay-queue,,": "has an empty name",
        "some.trace --timers delay-queue --out=": "'' does not name a file or directory",
        "some.trace --timers delay-queue --out a-file": "a-file is not a stored replay",
        "some.trace --timers delay-queue --master local": "--master needs --out",
        "nowhere --timers delay-queue": "nowhere does not exist",
        "a-file --timers delay-queue": "a-file is not a trace",
        ". --timers delay-queue": "is not a trace: it has no manifest.json",
    },
    "replay some.trace --timers": {
        "delay-queue,delay-queue": "timer delay-queue is given 2 times",
        OWN + "Twice": "Twice fired handle",
        OWN + "Asleep": "Asleep has",
    },
    "advise some.trace": {f"--memory {'9' * 400}": "is not a size, such as 100MB or 64KiB"},
    "compare": {
        "nowhere": "nowhere does not exist",
        "--timers delay-queue,": "has an empty name",
        "--sizes 1e3,x": f"'x' {NO_COUNT}",
        "--repeats 0": f"invalid value for '--repeats': '0' {NO_COUNT}",
        **{
            f"--budget={bad}": f"'--budget': '{bad}' is not a positive number of seconds"
            for bad in ("0", "-1", "nan", "inf", "x")
        },
        "--out a-file": "cannot store runs in a-file: a-file is not a directory",
        "--out a-file/runs": "cannot store runs in a-file/runs: a-file is not a directory",
    },
    "purgatory --quick": {
        "--rates 5": "rate must lie in [100, 10000000], not 5",
        "--rates fast": NO_COUNT,
        "--timer no-such": "no timer is called 'no-such'",
        "--refinements -1": "refinements must lie in [0, 10], not -1",
    },
}
"""Command line, its last words -> what the error says."""


@pytest.mark.parametrize(
    ("line", "says"),
    [(f"{start} {end}", says) for start, ends in NONSENSE.items() for end, says in ends.items()],
)
def test_nonsense_is_one_line_and_leaves_nothing(fails, trace, here, line, says):
    (here / "a-file").write_text("mine")
    before = sorted(here.rglob("*"))
    assert says in fails(*line.split())
    assert sorted(here.rglob("*")) == before
    assert (here / "a-file").read_text() == "mine"


GENERATE = "compare.trial.pipeline.generate.generate"

REPLAY = "compare.trial.pipeline.replay.replay_trace"

VERIFY = "compare.trial.pipeline.verify.verify"

SUMMARISE = "compare.trial.pipeline.summarise.summarise"

COMPARE = "compare.trial.bench.run.run_comparison"

PURGATORY = "compare.trial.purgatory.experiment.run_experiment"

REQUESTS = "compare.traffic.logs.ingest.ingest_requests"

TOUCHES = "compare.traffic.logs.ingest.ingest_touches"

GENERATED = {"timers": None, "operations": None, "shards": 1, "seed": 0, "parameters": {}}

WRITTEN = {"force": False, "master": None}

REPLAYED = {
    "expiries": True,
    "drained": True,
    "counting": False,
    "check": False,
    "session": None,
} | WRITTEN

LOG = "log.csv --time t --out o"

READ = {"time": "t"}

READ_ALL = (
    "--force --shards 3 --log-format tsv --time-format iso --unit us --strict"
    " --master local[2] --delimiter ; --columns a,b"
    " --where a=1 --where b<2 --limit 7 --time-zone Asia/Tokyo"
)

ALL_READ = {
    "time": "t",
    "unit": "us",
    "format": "tsv",
    "delimiter": ";",
    "columns": ("a", "b"),
    "time_format": "iso",
    "shards": 3,
    "strict": True,
    "where": ("a=1", "b<2"),
    "time_zone": "Asia/Tokyo",
    "limit": 7,
    "force": True,
    "master": "local[2]",
}

NO_ID = dict.fromkeys(("id", "event", "starts", "ends"))

ASKED = {"duration": "d", "end": None, "timeout": "5s"} | NO_ID

CALLS = [
    ("generate uniform --timer-count 60 --out o", GENERATE, ("uniform", "o"), {"timers": 60}),
    (
        "generate uniform --operations 90 --shards 3 --seed 4 --set rate=70 --set longest=80"
        " --out o --force --master local[2]",
        GENERATE,
        ("uniform", "o"),
        {"operations": 90, "shards": 3, "seed": 4, "parameters": {"rate": 70, "longest": 80}}
        | {"force": True, "master": "local[2]"},
    ),
    ("replay t --timers a,b --out o", REPLAY, ("t", ("a", "b"), "o"), {}),
    *(
        (f"replay t --timers a --out o {option}", REPLAY, ("t", ("a",), "o"), change)
        for option, change in {
            "--force": {"force": True},
            "--count": {"counting": True},
            "--no-drain": {"drained": False},
            "--summaries-only": {"expiries": False},
            "--master local": {"master": "local"},
        }.items()
    ),
    (
        "verify r",
        VERIFY,
        ("r",),
        {"examples": 5, "allow": (), "master": None},
    ),
    (
        "verify r --examples 7 --master local",
        VERIFY,
        ("r",),
        {"examples": 7, "allow": (), "master": "local"},
    ),
    ("summarise r", SUMMARISE, ("r", None), {"allow": ()}),
    ("summarise r --out o", SUMMARISE, ("r", "o"), {"allow": ()}),
    ("compare", COMPARE, {}, {}),
    ("compare t", COMPARE, {"traces": ("t",)}, {}),
    ("compare --tails", COMPARE, {"tails": "all"}, {}),
    (
        "compare t u --workload uniform --workload constant --timers a,b --sizes 7,8"
        " --operations 9 --repeats 3 --budget 0.5 --seed 4 --out o",
        COMPARE,
        {
            "traces": ("t", "u"),
            "workloads": ("uniform", "constant"),
            "timers": ("a", "b"),
            "sizes": (7, 8),
            "operations": 9,
            "repeats": 3,
            "budget": 0.5,
            "seed": 4,
            "runs": "o",
        },
        {},
    ),
    ("purgatory", PURGATORY, {}, {}),
    ("purgatory --quick", PURGATORY, {}, {}),
    *(
        (
            f"purgatory{quick} --rates 300,500 --seconds 0.5 --refinements 4 --limits 5000"
            " --memory 7 --repeats 2 --timer delay-queue --seed 9 --out there",
            PURGATORY,
            {
                "rates": (300, 500),
                "seconds": 0.5,
                "refinements": 4,
                "limits": (5000,),
                "memory_mib": 7,
                "repeats": 2,
                "timer": "delay-queue",
                "seed": 9,
                "runs": "there",
            },
            {},
        )
        for quick in ("", " --quick")
    ),
    (
        f"ingest requests {LOG} --duration d --timeout 5s",
        REQUESTS,
        READ,
        ASKED | {"duration_unit": "s", "time_is": "start"},
    ),
    (
        f"ingest requests {LOG} --duration d --timeout 5s --duration-unit ms --time-is end"
        f" {READ_ALL}",
        REQUESTS,
        ALL_READ,
        ASKED | {"duration_unit": "ms", "time_is": "end"},
    ),
    (
        f"ingest requests {LOG} --end e --timeout 5s --pattern x --time-format %d",
        REQUESTS,
        READ | {"pattern": "x", "time_format": "%d"},
        ASKED | {"duration": None, "end": "e", "duration_unit": "s", "time_is": "start"},
    ),
    (
        f"ingest requests {LOG} --id i --event v --starts a --ends z --timeout 5s",
        REQUESTS,
        READ,
        {"duration": None, "end": None, "timeout": "5s", "duration_unit": "s", "time_is": "start"}
        | {"id": "i", "event": "v", "starts": "a", "ends": "z"},
    ),
    (f"ingest touches {LOG} --key k --idle 6s", TOUCHES, READ, {"key": "k", "idle": "6s"}),
]
"""Command line, the function that it calls, and what it hands to it."""


@pytest.mark.parametrize(("line", "target", "given", "named"), CALLS, ids=[c[0] for c in CALLS])
def test_each_option_is_handed_on_as_its_own_argument(
    said, monkeypatch, line, target, given, named
):
    if "ingest" in line:
        from compare.traffic.logs.options import LogOptions

        given = (("log.csv",), "o", LogOptions(**given))
    elif target == GENERATE:
        named = GENERATED | WRITTEN | named
    elif target == REPLAY:
        named = REPLAYED | named
    elif target == COMPARE:
        given = (Comparison(**given, command=("wheelwork", *line.split())),)
    elif target == PURGATORY:
        default = QUICK if "--quick" in line else Experiment()
        given = (replace(default, **given, command=("wheelwork", *line.split())),)
    calls = []

    def record(*arguments, **keywords):
        calls.append((arguments, keywords))
        raise KeyboardInterrupt

    monkeypatch.setattr(target, record)
    assert said(*line.split())[0] == INTERRUPTED
    assert calls == [(given, named)]


def test_the_help_of_a_comparison_has_its_defaults(said):
    text = " ".join(said("compare", "--help")[1].split())
    default = Comparison()
    for value in (default.budget, default.repeats, default.operations, default.runs):
        assert f"[default: {value}]" in text
