"""Values between delimiters, in quotes or not."""

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compare.traffic.logs.blocks import LogError
from compare.traffic.logs.formats.base import Layout
from compare.traffic.logs.opening import open_log
from tests.compare.traffic.logs.records import PIECE, records, written


def test_a_quote_over_many_lines_damages_one_if_it_is_too_long(path):
    path.write_text('a,b\n1,"x\ny"\n2,"' + "z\n" * 100 + "3,4\n")
    found = records(path, ["a"], Layout("csv"), block=20, longest=60)
    assert found[0] == (2, False, "1")
    assert found[1][:2] == (4, True)
    assert found[-1] == (104, False, "3")


FIELD = st.text('ab,;" \té', max_size=5)

LINE_END = st.sampled_from(["\n", "\r\n", "\r"])


@given(
    st.lists(st.lists(FIELD, min_size=1, max_size=4).map(",".join), max_size=8),
    LINE_END,
    st.booleans(),
    PIECE,
)
@example(['"a""b"c,d', ' "x",y', '"a,b"', '"', 'a"b",c'], "\n", True, 3)
def test_lines_of_values_are_read_as_by_python(path, lines, end, ended, block):
    """Line by line, with a quote that is not closed as the only difference."""
    text = end.join(["x,y", *lines]) + end * ended
    layout = Layout("csv", ",", ("x", "y"))
    wanted = []
    for number, line in enumerate(["x,y", *lines], 1):
        if line.strip(" "):
            (fields,) = csv.reader([line])
            closed = not _is_open(line)
            fault = len(fields) != 2 or not closed
            wanted.append((number, fault, *(fields if not fault else ())))
    written(path, text.encode())
    rows = [
        (number, fault, *(values if not fault else ()))
        for number, fault, *values in records(path, ("x", "y"), layout, block)
    ]
    if not open_log(str(path), layout).multiline:
        assert rows == wanted


def _is_open(line):
    reader = csv.reader([f"{line}\n", "end\n"])
    next(reader)
    return reader.line_num > 1


@given(st.lists(st.tuples(FIELD, st.text('a,"\n', max_size=4)), min_size=2, max_size=8), PIECE)
def test_line_ends_in_quotes(path, rows, block):
    rows = [("x", "y"), ("1", "a\nb"), *rows]  # one in the head
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    numbers = [1]
    for row in rows:
        numbers.append(numbers[-1] + 1 + "".join(row).count("\n"))
    written(path, text.getvalue().encode())
    as_read = records(path, ("x", "y"), Layout("csv"), block=block)
    assert as_read == [
        (number, False, *row) for number, row in list(zip(numbers, rows, strict=False))[1:]
    ]


def test_a_quote_that_is_not_closed_damages_one_line(path):
    lines = ["x,y", '1,"a', 'b"', '2,"never', *(f"{k},{'z' * 100}" for k in range(2000)), "3,c"]
    rows = records(written(path, "\n".join(lines).encode()), ("x", "y"))
    assert rows[0] == (2, False, "1", "a\nb")
    assert [row[0] for row in rows if row[1]] == [4]
    assert rows[-1] == (len(lines), False, "3", "c")


@pytest.mark.parametrize(
    ("text", "delimiter", "point"),
    [("a;b\n1,5;2\n", None, ","), ("a|b\n1.5|2\n", None, "."), ("a b\n1.5 2\n", " ", ".")],
)
def test_other_delimiters(path, text, delimiter, point):
    layout = Layout(delimiter=delimiter)
    log = open_log(str(written(path, text.encode())), layout)
    assert (log.columns, log.point) == (("a", "b"), point)
    assert records(path, ("b",), layout) == [(2, False, "2")]
    with pytest.raises(LogError, match="delimiter '::' is not one character"):
        open_log(str(path), Layout(delimiter="::"))


def test_a_log_without_a_header_and_with_a_mark(path):
    data = b"\xef\xbb\xbf\n1,2\n\n3,4\n5\n"
    layout = Layout(columns=("a", "b"))
    rows = records(written(path, data), ("a", "b"), layout)
    assert rows == [(2, False, "1", "2"), (4, False, "3", "4"), (5, True, "5", None)]
    assert open_log(str(path), layout).fault == "it does not have the 2 fields of --columns"
    assert records(path, ("1",)) == [(4, False, "3"), (5, True, "5")]  # as a header
    assert records(written(path, b"1\n"), ("a",), Layout(columns=("a",))) == [(1, False, "1")]
