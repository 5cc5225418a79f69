"""Lines of a program in what containers write around each: CRI, and Docker's JSON.

The time in front of a line is when the container's engine saw it. What the line tells is inside.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from compare.traffic.logs.blocks import lines_of

_LOOKED = 10
"""The first lines, which tell whether there is an envelope."""
_CRI = r"^[0-9-]{10}T[0-9:]{8}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2}) std(?:out|err) F "
_CRI_PART = (
    _CRI.replace("std(?:out|err) F", "(?P<stream>std(?:out|err)) (?:(?P<last>F)|P)")
    + r"(?P<text>[^\r\n]*)"
)
_DOCKER = (
    r'^\{"log": ?"(?P<log>(?:[^"\\]|\\.)*?)(?:\\r)?(?:\\n)?", ?'
    r'(?:"stream": ?"std(?:out|err)", ?|"attrs": ?\{.*?\}, ?)*"time": ?"[^"]*"\}$'
)
_DOCKER_ENDED = _DOCKER.replace(r"(?:\\n)?", r"\\n")
_DOCKER_PART = (
    r'^\{"log": ?"(?P<text>[^"\\]*(?:\\.[^"\\]*)*?)(?P<last>\\n)?", ?(?:"attrs": ?\{.*?\}, ?)?'
    r'(?:"stream": ?"(?P<stream>std(?:out|err))", ?)?(?:"attrs": ?\{.*?\}, ?)?"time":'
)


def _cri(data: bytes) -> bytes:
    """The lines without what CRI wrote in front. A part of a long line is left as it is."""
    return re.sub(_CRI.encode(), b"", data, flags=re.MULTILINE)


def _docker(data: bytes, pattern: str) -> bytes:
    """The values of `log` in lines with a pattern. Other lines are left as they are."""
    lines = lines_of(data)
    found = pc.extract_regex(lines, pattern)
    texts = pc.if_else(found.is_valid(), pc.struct_field(found, "log"), lines)
    if b"\\" in data:
        is_escaped = pc.match_substring(texts.view(pa.string()), "\\")
        plain = [
            _unescaped(text) if escaped and valid else text
            for text, escaped, valid in zip(
                texts.to_pylist(), is_escaped.to_pylist(), found.is_valid().to_pylist(), strict=True
            )
        ]
        texts = pa.array(plain, pa.binary())
    ends = b"\n" if data.endswith((b"\n", b"\r")) else b""
    return b"\n".join(texts.to_pylist()) + ends


def _unescaped(text: bytes) -> bytes:
    """The characters of a string of JSON, as one line."""
    try:
        plain: str = json.loads(b'"%s"' % text)
    except ValueError:
        return text
    return re.sub("[\r\n]", " ", plain).encode(errors="replace")


class _Envelope(NamedTuple):
    """The text that a container runtime puts around each line."""

    line: str  # a pattern of a line in it
    part: str  # a pattern with the stream, the text, and what the last part of a line has
    remove: Callable[[bytes], bytes]  # from whole lines
    joins: bool = False  # whether long lines are in parts: the file is read as one stream


_ENVELOPES = {
    "CRI": _Envelope(_CRI_PART, _CRI_PART, _cri),
    "CRI, long lines in parts": _Envelope(_CRI_PART, _CRI_PART, _cri, joins=True),
    "Docker": _Envelope(_DOCKER, _DOCKER_PART, partial(_docker, pattern=_DOCKER_ENDED)),
    "Docker, long lines in parts": _Envelope(
        _DOCKER, _DOCKER_PART, partial(_docker, pattern=_DOCKER), joins=True
    ),
    # Some programs that write the same leave the line ends out.
    "Docker, without line ends": _Envelope(
        _DOCKER, _DOCKER_PART, partial(_docker, pattern=_DOCKER)
    ),
}


def envelope_of(lines: Sequence[str]) -> str:
    """The name of the envelope of most of the first lines, or an empty text."""
    some = [line for line in lines[:_LOOKED] if line.strip(" ")]
    for name in ("CRI", "Docker"):
        one = _ENVELOPES[name]
        if 2 * sum(re.match(one.line, line) is not None for line in some) > len(some):
            parts = filter(None, (re.match(one.part, line) for line in lines))
            ends = {part["last"] is not None for part in parts}
            if False in ends and (True in ends or name == "CRI"):
                return f"{name}, long lines in parts"
            return name if True in ends or name == "CRI" else f"{name}, without line ends"
    return ""


def is_joined(name: str) -> bool:
    """Whether a line may have several envelopes."""
    return bool(name) and _ENVELOPES[name].joins


def whole(name: str, data: bytes) -> int:
    """The number of bytes up to the last place at which no line lacks its remaining parts."""
    if not is_joined(name):
        return len(data)
    size = 0
    held: set[bytes] = set()  # streams
    for part in re.finditer(_ENVELOPES[name].part.encode(), data, re.MULTILINE):
        (held.discard if part["last"] else held.add)(part["stream"])
        if not held:
            size = data.find(b"\n", part.end()) + 1
    return size


def without(name: str, data: bytes) -> bytes:
    """Some whole lines without their envelopes. Their number stays the same."""
    if not name:
        return data
    one = _ENVELOPES[name]
    return one.remove(_joined(data, one.part) if one.joins else data)


def _joined(data: bytes, pattern: str) -> bytes:
    """The data with the parts of each line in its last envelope, and blank lines for the others."""
    held: dict[bytes, list[bytes]] = {}  # a stream -> the parts of its line so far
    lines: list[bytes] = []
    last: dict[bytes, tuple[int, bytes, bytes]] = {}  # the last part: its place and envelope
    for line in data.splitlines(keepends=True):
        part = re.match(pattern.encode(), line)
        if part is None:
            lines.append(line)
            continue
        stream, (first, end) = part["stream"], part.span("text")
        held.setdefault(stream, []).append(line[first:end])
        last[stream] = len(lines), line[:first], line[end:]
        lines.append(b"\n")
        if part["last"]:
            lines[-1] = b"".join([line[:first], *held.pop(stream), line[end:]])
    for stream, texts in held.items():  # the log ends within these lines
        place, before, behind = last[stream]
        lines[place] = b"".join([before, *texts, behind])
    return b"".join(lines)
