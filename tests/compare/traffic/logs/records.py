"""Write a log, and read its records as texts."""

import pytest
from hypothesis import strategies as st

from compare.traffic.logs import blocks
from compare.traffic.logs.opening import ANY, open_log

PIECE = st.sampled_from([1, 2, 3, 7, 50, 1 << 20])


def text_of(value):
    return value.as_py().decode(errors="replace") if value.is_valid else None


def records(path, roles, layout=ANY, block=1 << 20, longest=1 << 20):
    """(number of the line or record, whether it is damaged, its texts) of a log."""
    rows, before = [], 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", block)
        log = open_log(str(path), layout)
        log.source.longest_line = longest
        for piece in log.blocks():
            for read in log.read(piece, {name: name for name in roles}):
                for row, (number, fault) in enumerate(
                    zip(read.number.tolist(), read.fault.tolist(), strict=True)
                ):
                    texts = [text_of(read.texts[name][row]) for name in roles]
                    rows.append((before + number + 1, fault, *texts))
                before += read.total
    return rows


def written(path, data):
    path.write_bytes(data)
    return path
