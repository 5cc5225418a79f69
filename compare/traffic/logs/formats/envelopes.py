"""Lines of a program in what containers write around each: CRI, and Docker's JSON.

The time in front of a line is when the container's engine saw it. What the line tells is inside.
"""

import json
import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from compare.traffic.logs.blocks import lines_of

_LOOKED = 10
"""The first lines, which tell whether there is an envelope."""
_CRI_ANY = r"^[0-9-]{10}T[0-9:]{8}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2}) (std(?:out|err)) ([FP]) "
_CRI = _CRI_ANY.replace("([FP])", "F")
_PART = re.compile(_CRI_ANY.encode(), re.MULTILINE)
_DOCKER = (
    r'^\{"log": ?"(?P<log>(?:[^"\\]|\\.)*?)(?:\\r)?(?:\\n)?", ?'
    r'(?:"stream": ?"std(?:out|err)", ?|"attrs": ?\{.*?\}, ?)*"time": ?"[^"]*"\}$'
)


def _cri(data: bytes) -> bytes:
    """The lines without what CRI wrote in front. A part of a long line is left as it is."""
    return re.sub(_CRI.encode(), b"", data, flags=re.MULTILINE)


def _cri_in_parts(data: bytes) -> bytes:
    """The same with the parts of a line joined, and blank lines in place of all but the last."""
    held: dict[bytes, bytes] = {}  # a stream -> the parts of its line so far
    lines = []
    for line in data.splitlines(keepends=True):
        found = _PART.match(line)
        if found is None:
            lines.append(line)
        elif found[2] == b"P":
            held[found[1]] = held.get(found[1], b"") + line[found.end() :].rstrip(b"\r\n")
            lines.append(b"\n")
        else:
            lines.append(held.pop(found[1], b"") + line[found.end() :])
    return b"".join(lines)


def whole(name: str, data: bytes) -> int:
    """How many bytes of some whole lines are behind no part of a line that goes on."""
    if name != IN_PARTS:
        return len(data)
    size = 0
    held: set[bytes] = set()  # streams
    for found in _PART.finditer(data):
        (held.add if found[2] == b"P" else held.discard)(found[1])
        if not held:
            size = data.find(b"\n", found.end()) + 1
    return size


def _docker(data: bytes) -> bytes:
    """The lines that are values of `log`."""
    lines = lines_of(data)
    found = pc.extract_regex(lines, _DOCKER)
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


IN_PARTS = "CRI, long lines in parts"
"""An envelope of a file that has to be read as one stream."""
ENVELOPES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "CRI": (_CRI_ANY, _cri),
    IN_PARTS: (_CRI_ANY, _cri_in_parts),
    "Docker": (_DOCKER, _docker),
}
"""Name -> what a line with it matches, and a function that removes it from some whole lines."""


def envelope_of(lines: Sequence[str]) -> str:
    """The envelope of most of the first lines, or an empty text."""
    some = [line for line in lines[:_LOOKED] if line.strip(" ")]
    for name, (pattern, _) in ENVELOPES.items():
        if 2 * sum(re.match(pattern, line) is not None for line in some) > len(some):
            has_parts = name == "CRI" and any(
                (found := re.match(_CRI_ANY, line)) and found[2] == "P" for line in lines
            )
            return IN_PARTS if has_parts else name
    return ""


def without(name: str, data: bytes) -> bytes:
    """Some whole lines without their envelopes. Their number stays the same."""
    return ENVELOPES[name][1](data) if name else data
