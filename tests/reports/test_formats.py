"""Numbers and units, at the boundaries where their form changes; doctests have the others."""

import pytest

from compare.base import formats
from compare.base.formats import NO_BREAK, SPACE


def plain(text: str) -> str:
    """With ordinary spaces, and _ between groups of digits."""
    return text.replace(SPACE, " ").replace(NO_BREAK, "_")


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (formats.nanoseconds, 0.0, "0 ns"),
        (formats.nanoseconds, 0.0127, "0.0127 ns"),
        (formats.nanoseconds, 99.94, "99.9 ns"),
        (formats.nanoseconds, 999.4, "999 ns"),
        (formats.nanoseconds, 999.6, "1.00 µs"),
        (formats.nanoseconds, 999.6e3, "1.00 ms"),
        (formats.nanoseconds, 999.6e6, "1.00 s"),
        (formats.nanoseconds, 1.237e13, "3.44 h"),
        (formats.nanoseconds, 59.4e9, "59.4 s"),
        (formats.nanoseconds, 60e9, "60.0 s"),
        (formats.nanoseconds, 86_400e9, "1.00 d"),
        (formats.data_size, 0.5, "0.500 B"),
        (formats.data_size, 1023.0, "1_020 B"),
        (formats.data_size, 1024.0, "1.00 KiB"),
        (formats.data_size, 3000 * 2**30, "3_000 GiB"),
        (formats.count, -1234567, "-1_234_567"),
        (formats.size, 20_000, "N = 20_000"),
        (formats.ratio, 0.994, "0.99×"),
        (formats.ratio, 9.994, "9.99×"),
        (formats.ratio, 10.06, "10.1×"),
        (formats.ratio, 1237.0, "1_240×"),
        (formats.amount, 0.0, "0"),
        (formats.amount, 0.0999, "0.1"),
        (formats.amount, 0.01237, "0.012"),
        (formats.amount, 0.1237, "0.124"),
        (formats.amount, 200.4, "200"),
        (formats.amount, 1237.0, "1_240"),
        (formats.share, 0.01237, "1.24%"),
        (formats.share, 0.01, "1%"),
        (formats.share, 0.0099, "1%"),
        (formats.short_count, 999, "999"),
        (formats.short_count, 999_999, "1M"),
        (formats.short_count, 10**6, "1M"),
        (formats.short_count, 2_560_000, "2.56M"),
        (formats.short_count, -5_000, "-5k"),
    ],
)
def test_a_value_has_its_text(form, value, text):
    assert plain(form(value)) == text
    assert " " not in form(value)  # it stays on one line
