"""Which rows of a log are used: conditions on columns, and samples."""

import re
from fractions import Fraction
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
_SHARE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(?P<percent>%?)")


class Condition(NamedTuple):
    """A comparison of a column with a value, as in `status = 504`."""

    column: str
    operator: str
    value: str

    def holds(self, texts: pa.Array, point: str) -> Bools:
        """Where it holds.

        With a number, only numbers are compared. The condition does not hold of a value that is
        missing, or of another text.
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


def parse_share(text: str) -> float:
    """Parse a share such as `1%` or `0.01`. Raises ParameterError.

    >>> parse_share("2.5%"), parse_share("1")
    (0.025, 1.0)
    """
    match = _SHARE.fullmatch(text.strip())
    share = Fraction(match["number"]) / (100 if match["percent"] else 1) if match else Fraction(0)
    if not 0 < share <= 1:
        raise ParameterError(f"sample {text[:80]!r} is not a share above 0 and up to 1, such as 1%")
    return float(share)
