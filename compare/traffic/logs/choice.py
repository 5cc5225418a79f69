"""Conditions that choose the rows of a log."""

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compare.traffic.logs.time_formats import NUMBER
from timers.arrays import Bools
from timers.errors import ParameterError

_CONDITION = re.compile(r"\s*(?P<column>\S.*?)\s*(?P<operator><=|>=|!=|=|<|>)\s*(?P<value>.*?)\s*")
_COMPARISONS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


class Condition(NamedTuple):
    """A comparison of a column with a value, as in `status = 504`."""

    column: str
    operator: str
    value: str

    def holds(self, texts: pa.Array, point: str) -> Bools:
        """Return for each text whether the condition holds.

        If the value is a number, only numbers are compared. The condition does not hold for a
        missing value or another text.
        """
        texts = pc.ascii_trim(texts.view(pa.string()), " ")
        value: str | float = self.value
        if re.fullmatch(NUMBER, self.value):
            texts = pc.replace_substring(texts, point, ".")
            value = float(self.value)
            numeric = pc.match_substring_regex(texts, f"^(?:{NUMBER})$")
            texts = pc.if_else(numeric, texts, None).cast(pa.float64())
        return np.asarray(pc.fill_null(_COMPARISONS[self.operator](texts, value), False))


def parse_condition(text: str) -> Condition:
    """Parse `COLUMN OPERATOR VALUE`. Raises ParameterError.

    >>> parse_condition("status >= 500")
    Condition(column='status', operator='>=', value='500')
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ParameterError(
            f"condition {text[:80]!r} is not a comparison with =, !=, <, <=, > or >=, such as"
            " 'status = 504'"
        )
    return Condition(*match.groups())
