"""Blocks of a plain file: each has the lines that begin in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.traffic.logs import blocks
from compare.traffic.logs.blocks import Source, count_byte, file_blocks, load


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("blocks") / "log"


@given(
    st.lists(st.text("ab\r", max_size=20), min_size=1, max_size=12),
    st.sampled_from(["\n", "\r"]),
    st.integers(1, 12),
    st.integers(0, 8),
)
def test_a_block_has_the_lines_that_begin_in_it(log, texts, line_end, size, more):
    end, longest = line_end.encode(), size + more
    data = line_end.join(texts).encode()
    log.write_bytes(data)
    expected, first = {}, 0
    for line in data.split(end):
        block = expected.setdefault(first // size, [b"", False])
        if len(line) > longest:
            block[1] = True
        else:
            block[0] += data[first : first + len(line) + 1]
        first += len(line) + 1
    source = Source(str(log), None, b"", line_end=end, longest_line=longest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", size)
        for number, block in enumerate(file_blocks(source)):
            assert load(source, block) == tuple(expected.get(number, (b"", False)))


@given(st.binary())
def test_characters_are_counted(data):
    assert count_byte(data, b"\n") == data.count(b"\n")
