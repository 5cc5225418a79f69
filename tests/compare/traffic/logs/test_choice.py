"""Conditions on columns, against Python's own comparisons."""

import operator
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.traffic.logs.choice import Condition, parse_condition
from compare.traffic.logs.time_formats import NUMBER
from timers.errors import ParameterError

OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
TEXT = st.sampled_from(["504", "504.0", "5,04e2", "-1", "+.5", "1e999", "", "x", "504 x", "nan"])


@given(
    st.lists(st.none() | TEXT | st.text(max_size=3)),
    st.sampled_from(list(OPERATORS)),
    TEXT,
    st.sampled_from(".,"),
)
def test_conditions_hold_as_in_python(texts, sign, value, point):
    condition = Condition("column", sign, value)
    wanted = []
    for text in texts:
        text = None if text is None else text.strip(" ")
        if re.fullmatch(NUMBER, value) and text is not None:
            text = text.replace(point, ".")
            pair = (float(text), float(value)) if re.fullmatch(NUMBER, text) else None
        else:
            pair = None if text is None else (text.encode(), value.encode())
        wanted.append(pair is not None and OPERATORS[sign](*pair))
    column = pa.array([None if text is None else text.encode() for text in texts], pa.binary())
    assert condition.holds(column, point).tolist() == wanted


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("status=504", ("status", "=", "504")),
        (" the status  >=  504 ", ("the status", ">=", "504")),
        ("user != ", ("user", "!=", "")),
        ("a<b=c", ("a", "<", "b=c")),
    ],
)
def test_conditions_are_parsed(text, parts):
    assert parse_condition(text) == parts


@pytest.mark.parametrize("text", ["", "status", "= 504", "status ~ 504"])
def test_what_is_not_a_condition(text):
    with pytest.raises(ParameterError, match=f"condition '{text}' is not a comparison with ="):
        parse_condition(text)
