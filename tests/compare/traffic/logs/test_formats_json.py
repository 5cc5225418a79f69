"""Objects of JSON: a line each, in an array, or printed in other ways."""

import json
import re
import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compare.traffic.logs.blocks import LogError
from compare.traffic.logs.formats.base import Layout
from compare.traffic.logs.opening import open_log
from tests.compare.traffic.logs.records import records, written
from tests.words import one_line


def test_values_of_objects(path):
    line = (
        '{"n": 1.50e-3, "s": "\\u00e9\\ud83d\\ude00\\ud800x\\n", "o": {"s": [1, "]}"]}, "s2": ""}'
    )
    names = ("n", "s", "o", "o.s", "s2", "none")
    assert records(written(path, line.encode()), names) == [
        (1, False, "1.50e-3", "é😀\ufffdx\n", '{"s": ["1", "]}"]}', '["1", "]}"]', "", None)
    ]
    assert open_log(str(path)).columns == ("n", "s", "o.s", "s2")
    lines = ['{"a.b": 1, "a": {"b": 2}}', '{"a": {"b": null}, "a.b": true}', '{"a": [{"b": 1}]}']
    lines += [
        ' {"a": {"b": "\\ud800"}}\t',
        '{"a.b": "\u00e9\udcff"}',  # damaged UTF-8
        '{"a": {"b": NaN}} ',
        "5",
        '{"a": 1} {}',
    ]
    data = "\n".join(lines).encode(errors="surrogateescape")
    assert [row[1:] for row in records(written(path, data), ("a.b",))] == [
        (False, "1"),
        (False, "true"),
        (False, None),
        (False, "\ufffd"),
        (False, "\u00e9\ufffd"),
        (False, "NaN"),
        (True, None),
        (True, None),
    ]
    deep = "[" * 100_000 + "]" * 100_000
    assert records(written(path, f'{{"a": {deep}}}\n{{}}'.encode()), ("a",))[0][1]


HOSTILE = ["5", '"x"', '{"a": [{}', "{}]}", '{}, {"a": 2}', '{"a": 3}, 0, {}', '{"a": "', '"}', " "]


@example(['{"a": [{}', "{}]}", '{}, {"a": 2}'])
@example(['{"a": "', '"}', '{"a": 3}, 0, {}', "5"])
@given(st.lists(st.sampled_from(['{"a": 1}', *HOSTILE]), max_size=6))
def test_a_line_is_an_object_by_itself(path, lines):
    """Lines that are read at once are not taken for parts of each other."""
    data = "\n".join(['{"a": 0}', *lines]).encode()
    rows = records(written(path, data), ("a",), Layout("jsonl"))
    assert rows == records(path, ("a",), Layout("jsonl"), block=1)
    whole = [line == '{"a": 1}' for line in lines if line != " "]
    assert [not row[1] for row in rows[1:]] == whole


def test_an_array_over_many_lines(path):
    objects = [{"ts": k, "text": ']}\\"' * k} for k in range(20)]
    for data in (json.dumps(objects), json.dumps(objects, indent=2), json.dumps(objects) + "\n"):
        for block in (1, 40, 1 << 20):
            rows = records(written(path, data.encode()), ("ts",), block=block)
            assert rows == [(k + 1, False, str(k)) for k in range(20)]
    rows = records(written(path, b'[{"ts": 1}, 5, {"ts": 2}, {"ts": '), ("ts",), Layout("jsonl"))
    assert [row[1] for row in rows] == [False, True, False, True]


SPAN = {"traceID": "a", "startTime": 1714557600007214, "duration": 5, "tags": [{"key": "k"}]}

OTLP_SPAN = {"startTimeUnixNano": "1714557600007214592", "attributes": [{"key": "a"}]}

OTLP = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "a"}]},
            "scopeSpans": [{"scope": {"name": "x"}, "spans": [OTLP_SPAN, OTLP_SPAN]}],
        }
    ]
}

ROW = {"time": "2024-05-01T10:00:00Z", "took": 5, "tags": [{"key": "k"}]}

OTHER_JSON = {
    "pretty-printed": (json.dumps(ROW, indent=2) * 2, ".", [ROW, ROW]),
    "a key with a hyphen": (
        json.dumps({"my-spans": [SPAN]}),
        '.["my-spans"][]',
        [SPAN],
    ),
    "arrays of objects in an array": (
        json.dumps([[ROW, ROW], [ROW]]),
        ".[][]",
        [ROW, ROW, ROW],
    ),
    "an array of objects with arrays": (json.dumps([{"rows": [SPAN]}]), ".[].rows[]", [SPAN]),
    "an array of arrays": (
        "[[1714557600, 5], [1714557601, 6]]",
        ".[] | {time: .[0], duration: .[1]}",
        [{"time": 1714557600, "duration": 5}, {"time": 1714557601, "duration": 6}],
    ),
}


SPANS = {
    "Jaeger": (json.dumps({"data": [{"spans": [SPAN]}], "total": 0}), [SPAN]),
    "Jaeger, several traces": (
        json.dumps({"data": [{"spans": [SPAN, SPAN], "processes": {"p": {}}}, {"spans": [SPAN]}]}),
        [SPAN] * 3,
    ),
    "Jaeger, longer than the head": (
        json.dumps({"data": [{"spans": [SPAN] * 20_000}]}),
        [SPAN] * 20_000,
    ),
    "OTLP": (json.dumps(OTLP, indent=1), [OTLP_SPAN] * 2),
    "OTLP in lines": (f"{json.dumps(OTLP)}\n" * 2, [OTLP_SPAN] * 4),
    "Chrome": ('{"traceEvents": [\n{"ph": "X", "ts": 5}]}', [{"ph": "X", "ts": 5}]),
    "an array of objects with spans": (json.dumps([{"spans": [SPAN]}]), [SPAN]),
    "a text like a key": (
        json.dumps({"data": [{"a": "spans", "b": [5], "c": '"spans": [', "spans": [SPAN]}]}),
        [SPAN],
    ),
}
"""Records in arrays that objects have, and these records."""


@pytest.mark.parametrize("name", SPANS)
def test_spans_are_read_wherever_the_file_is_cut(path, name):
    text, spans = SPANS[name]
    path.write_text(text)
    names = tuple(key for key, value in spans[0].items() if not isinstance(value, list))
    assert set(names) < set(open_log(str(path)).columns) | {"other"}
    rows = [
        (number, False, *(str(span[name]) for name in names))
        for number, span in enumerate(spans, 1)
    ]
    for block in (7, 50, 1 << 20) if len(text) < 5000 else (1 << 14, 1 << 20):
        assert records(path, names, block=block) == rows


@pytest.mark.parametrize("name", OTHER_JSON)
def test_other_json_is_refused_with_a_program_for_jq(path, name):
    text, recipe, rows = OTHER_JSON[name]
    path.write_text(text)
    ends = re.escape(f": jq -c '{recipe}' {path}")
    with one_line(LogError, f"is neither an object a line nor an array of objects .*{ends}$"):
        open_log(str(path))
    if shutil.which("jq"):
        lines = subprocess.check_output(["jq", "-c", recipe, path], text=True)
        assert [json.loads(line) for line in lines.splitlines()] == rows
        path.write_text(lines)
        assert open_log(str(path)).format == "jsonl"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ROW),
        json.dumps([ROW]),
        '{"items": [{"a": 1}], "ts": 5}\n{"ts": 6}',
        '{"ts": 5}',
        "{broken\n" + json.dumps(ROW),
        "{broken",
        "[]",
        "[\n{\n" + json.dumps(ROW)[1:] + "\n]",
    ],
)
def test_json_that_is_read(path, text):
    path.write_text(text)
    assert open_log(str(path)).format == "jsonl"
